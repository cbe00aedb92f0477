//! `iostrata study`: naming, showing, running and comparing.

use iostrata_plan::study::{Extent, MeasuringOverrides, StudyPlan, StudySpec, cost, shipped};

use crate::args::{ListArgs, ResumeArgs, RunArgs, ShowArgs, StudyAction, StudyArgs};
use crate::display::{print_json, print_text, width};
use crate::exit_error::ExitError;
use crate::signals::Interruption;
use crate::study_run;
use crate::study_run::{changes, load, usage};
use crate::study_show::{Listed, Shown, list, show};

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say.
pub fn run(args: &StudyArgs, interruption: &Interruption) -> Result<(), ExitError> {
    match &args.action {
        StudyAction::List(args) => list_shipped(args),
        StudyAction::Show(args) => show_study(args),
        StudyAction::Run(args) => run_study(args, interruption),
        StudyAction::Resume(args) => resume(args, interruption),
        StudyAction::Diff(args) => study_run::diff(args),
    }
}

fn list_shipped(args: &ListArgs) -> Result<(), ExitError> {
    let listed = |(name, text): &(&str, &str)| {
        let spec = StudySpec::parse(text, name).map_err(usage)?;
        let of = |extent| {
            spec.plan(extent, None, &MeasuringOverrides::default()).map(|plan| cost(&plan))
        };
        Ok(Listed {
            quick: of(Extent::Quick).map_err(usage)?,
            full: of(Extent::Full).map_err(usage)?,
            name: spec.name,
            title: spec.title,
            question: spec.question,
        })
    };
    let studies = shipped().iter().map(listed).collect::<Result<Vec<_>, ExitError>>()?;
    if args.printing.json { print_json(&studies) } else { print_text(&list(&studies)) }
}

fn show_study(args: &ShowArgs) -> Result<(), ExitError> {
    let (spec, extent) = (load(&args.choice.study)?, args.choice.extent());
    let overrides = args.choice.overrides(&args.common);
    let plan = spec.plan(extent, args.choice.parts(), &overrides).map_err(usage)?;
    let changes = changes(&plan, &args.place)?;
    show_plan(&spec, &plan, &changes, args.choice.parts(), args.common.printing.json)
}

/// Prints a plan with what it costs and changes; `run --dry-run` ends here too.
fn show_plan(
    spec: &StudySpec,
    plan: &StudyPlan,
    changes: &[String],
    wanted: Option<&[String]>,
    json: bool,
) -> Result<(), ExitError> {
    let mut parts = spec.parts(plan.extent);
    parts.retain(|part| wanted.is_none_or(|wanted| wanted.contains(&part.name)));
    let exclusions = spec.exclusions(plan.extent);
    let cost = cost(plan);
    let shown = Shown { plan, cost: &cost, changes, parts: &parts, exclusions: &exclusions };
    if json { print_json(&shown) } else { print_text(&show(&shown, width())) }
}

fn run_study(args: &RunArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let (spec, extent) = (load(&args.choice.study)?, args.choice.extent());
    let overrides = args.choice.overrides(&args.common);
    let plan = spec.plan(extent, args.choice.parts(), &overrides).map_err(usage)?;
    let changes = changes(&plan, &args.place)?;
    if args.dry_run {
        return show_plan(&spec, &plan, &changes, args.choice.parts(), args.common.printing.json);
    }
    let plan = watched(plan, args.no_profile, args.no_trace);
    study_run::run(plan, &args.place, &args.servers.servers, &args.common, interruption)
}

/// Leaves out what is not wanted beside the figures.
fn watched(mut plan: StudyPlan, no_profile: bool, no_trace: bool) -> StudyPlan {
    if no_profile {
        plan.measuring.profile_hz = 0;
    }
    plan.measuring.traced &= !no_trace;
    plan
}

fn resume(args: &ResumeArgs, interruption: &Interruption) -> Result<(), ExitError> {
    study_run::resume(&args.run, &args.servers.servers, args.printing, interruption)
}
