//! `iostrata tpcc`, `oltp`, `stress`, `insert`: commands that are made from the workloads' own
//! options.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use iostrata_workload::{
    OptionForm, Verb, VerbHelp, WORKLOADS, Workload, WorkloadError, WorkloadKind, WorkloadOption,
    WorkloadSettings,
};

use super::{
    CheckArgs, Common, DriveArgs, LoadArgs, PrepareArgs, PrivateArgs, TargetArgs, TransactionArgs,
    value,
};

/// The argument that names a member of a family.
const MEMBER: &str = "member";

/// A command of a workload.
#[derive(Debug)]
pub struct WorkloadCommand {
    /// Of which one.
    pub kind: &'static WorkloadKind,
    /// What to do with it.
    pub action: WorkloadAction,
    /// The member of its family; nothing where it is one workload.
    member: String,
    /// The values of its own options.
    settings: WorkloadSettings,
}

/// What to do with a workload.
#[derive(Debug)]
pub enum WorkloadAction {
    Prepare(Box<PrepareArgs>),
    Run(Box<TransactionArgs>),
    Check(CheckArgs),
    Cleanup(CheckArgs),
}

impl WorkloadCommand {
    /// The workload that is meant.
    ///
    /// # Errors
    /// A setting that it cannot have.
    pub fn workload(&self) -> Result<Box<dyn Workload>, WorkloadError> {
        let mut settings = self.settings.clone();
        match &self.action {
            WorkloadAction::Prepare(_) => settings.loads = true,
            WorkloadAction::Run(args) => {
                settings.loads = args.private.server.is_some();
                settings.set("threads", args.drive.threads.iter().copied().max().unwrap_or(1));
            }
            WorkloadAction::Check(_) | WorkloadAction::Cleanup(_) => {}
        }
        iostrata_workload::workload(&(self.kind.named)(&self.member, &settings), &settings)
    }

    /// Whether sysbench's defaults stand for options that are not given.
    pub fn has_defaults(&self) -> bool {
        self.kind.name == "oltp"
    }

    /// The database.
    pub fn target_mut(&mut self) -> &mut TargetArgs {
        match &mut self.action {
            WorkloadAction::Prepare(args) => &mut args.target,
            WorkloadAction::Run(args) => &mut args.target,
            WorkloadAction::Check(args) | WorkloadAction::Cleanup(args) => &mut args.target,
        }
    }
}

/// The workloads that have commands.
pub(super) fn commands() -> impl Iterator<Item = &'static WorkloadKind> {
    WORKLOADS.into_iter().filter(|kind| !kind.verbs.is_empty())
}

impl Subcommand for WorkloadCommand {
    fn augment_subcommands(all: Command) -> Command {
        commands().fold(all, |all, kind| all.subcommand(command(kind)))
    }

    fn augment_subcommands_for_update(all: Command) -> Command {
        Self::augment_subcommands(all)
    }

    fn has_subcommand(name: &str) -> bool {
        commands().any(|kind| kind.name == name)
    }
}

impl FromArgMatches for WorkloadCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let missing = || Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (name, matches) = matches.subcommand().ok_or_else(missing)?;
        let kind = commands().find(|kind| kind.name == name).ok_or_else(missing)?;
        let member = match kind.members.is_empty() {
            true => String::new(),
            false => matches.get_one::<String>(MEMBER).cloned().unwrap_or_default(),
        };
        let (name, matches) = matches.subcommand().ok_or_else(missing)?;
        let help = kind.verbs.iter().find(|help| verb_name(help.verb) == name);
        let verb = help.ok_or_else(missing)?.verb;
        let settings = settings(kind, verb, matches);
        let action = match verb {
            Verb::Prepare => WorkloadAction::Prepare(Box::new(prepare(kind, matches)?)),
            Verb::Run => WorkloadAction::Run(Box::new(TransactionArgs {
                target: TargetArgs::from_arg_matches(matches)?,
                private: PrivateArgs::from_arg_matches(matches)?,
                drive: DriveArgs::from_arg_matches(matches)?,
                checks: settings.text("check") == Some("1"),
                common: Common::from_arg_matches(matches)?,
            })),
            Verb::Check => WorkloadAction::Check(CheckArgs::from_arg_matches(matches)?),
            Verb::Cleanup => WorkloadAction::Cleanup(CheckArgs::from_arg_matches(matches)?),
        };
        Ok(Self { kind, action, member, settings })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn prepare(kind: &WorkloadKind, matches: &ArgMatches) -> Result<PrepareArgs, Error> {
    let load = match kind.keeps_loads {
        true => LoadArgs::from_arg_matches(matches)?,
        false => {
            LoadArgs { printing: FromArgMatches::from_arg_matches(matches)?, ..LoadArgs::new() }
        }
    };
    let loaders = matches.try_get_one::<u32>("threads").ok().flatten().copied();
    let target = TargetArgs::from_arg_matches(matches)?;
    Ok(PrepareArgs { target, loaders: loaders.unwrap_or(1), load })
}

fn verb_name(verb: Verb) -> &'static str {
    match verb {
        Verb::Prepare => "prepare",
        Verb::Run => "run",
        Verb::Check => "check",
        Verb::Cleanup => "cleanup",
    }
}

fn command(kind: &'static WorkloadKind) -> Command {
    let members = kind.members.iter().map(|(name, words)| PossibleValue::new(*name).help(*words));
    let members: Vec<PossibleValue> = members.collect();
    let mut command = with_help(Command::new(kind.name), (kind.about, kind.detail))
        .subcommand_required(true)
        .arg_required_else_help(true);
    if !members.is_empty() {
        let member = Arg::new(MEMBER)
            .value_name("MEMBER")
            .required(true)
            .help("The workload, as sysbench calls it without oltp_")
            .value_parser(PossibleValuesParser::new(members));
        command = command.arg(member);
    }
    kind.verbs.iter().fold(command, |command, help| command.subcommand(verb(kind, help)))
}

fn with_help(command: Command, (about, detail): (&'static str, &'static str)) -> Command {
    let command = command.about(about);
    if detail.is_empty() {
        return command.long_about(None);
    }
    command.long_about(format!("{about}\n\n{detail}"))
}

/// The options of one verb, in the order of its help.
fn own(
    kind: &'static WorkloadKind,
    verb: Verb,
) -> impl Iterator<Item = &'static WorkloadOption> + Clone {
    kind.options.iter().filter(move |option| option.verbs.contains(&verb))
}

fn verb(kind: &'static WorkloadKind, help: &VerbHelp) -> Command {
    let options = |command: Command, is_late: bool| {
        let options = own(kind, help.verb).filter(|option| option.is_late == is_late);
        options.fold(command, |command, option| command.arg(arg(option)))
    };
    // As with sysbench, the last of several counts.
    let command = Command::new(verb_name(help.verb)).args_override_self(true);
    let command = TargetArgs::augment_args(command);
    let command = match help.verb {
        Verb::Prepare => {
            let command = options(command, false);
            match kind.keeps_loads {
                true => LoadArgs::augment_args(command),
                false => super::Printing::augment_args(command),
            }
        }
        Verb::Run => {
            let command = options(PrivateArgs::augment_args(command), false);
            Common::augment_args(options(DriveArgs::augment_args(command), true))
        }
        Verb::Check => super::Printing::augment_args(options(command, false)),
        Verb::Cleanup => {
            super::Printing::augment_args(options(command, false)).visible_alias("clean")
        }
    };
    with_help(command, (help.about, help.detail))
}

fn arg(option: &WorkloadOption) -> Arg {
    let mut arg = Arg::new(option.name).long(option.name).help(option.help);
    if let Some(short) = option.short {
        arg = arg.short(short);
    }
    if let Some(alias) = option.alias {
        arg = arg.visible_alias(alias);
    }
    if let Some(default) = option.default {
        arg = arg.default_value(default).hide_default_value(default.is_empty());
    }
    if let Some(other) = option.needs {
        arg = arg.requires(other);
    }
    arg = arg.conflicts_with_all(option.excludes);
    match option.form {
        OptionForm::Count => arg.value_name("N").value_parser(value::whole::<u32>),
        OptionForm::Percent(name) => arg.value_name(name).value_parser(value::percent),
        OptionForm::Number(name) => arg.value_name(name).value_parser(value::number),
        OptionForm::Text(name) => arg.value_name(name),
        OptionForm::Word(name, words) => {
            let words = words.iter().map(|(word, help)| PossibleValue::new(*word).help(*help));
            let words: Vec<PossibleValue> = words.collect();
            arg.value_name(name).value_parser(PossibleValuesParser::new(words))
        }
        OptionForm::Switch => arg
            .value_name("0|1")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("1")
            .value_parser(value::switch),
        OptionForm::OnOff => arg.value_name("0|1").value_parser(value::switch),
        OptionForm::Flag => arg.action(ArgAction::SetTrue),
    }
}

/// What the options of a workload were given as, or are by default.
fn settings(kind: &'static WorkloadKind, verb: Verb, matches: &ArgMatches) -> WorkloadSettings {
    let mut settings = WorkloadSettings::default();
    for option in own(kind, verb) {
        let name = option.name;
        let text = match option.form {
            OptionForm::Count => matches.get_one::<u32>(name).map(ToString::to_string),
            OptionForm::Percent(_) => matches.get_one::<u8>(name).map(ToString::to_string),
            OptionForm::Number(_) => matches.get_one::<f64>(name).map(ToString::to_string),
            OptionForm::Text(_) | OptionForm::Word(..) => matches.get_one::<String>(name).cloned(),
            OptionForm::Switch | OptionForm::OnOff | OptionForm::Flag => {
                matches.get_one::<bool>(name).map(|is_on| u8::from(*is_on).to_string())
            }
        };
        text.into_iter().for_each(|text| settings.set(name, text));
    }
    settings
}
