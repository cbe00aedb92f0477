//! What job files come to, for a reader.

use iostrata_plan::fio::{FioJob, FioPlan, FioStream};
use iostrata_plan::{
    Access, BlockSizes, Blocks, FileCall, FlushMethod, IoApi, IoSpec, Mix, Pacing, RateProcess,
    Sharing, SyncWrites,
};
use iostrata_stats::units;

/// The plan, one paragraph per wave.
pub fn text(plan: &FioPlan, width: usize) -> String {
    let mut text = String::new();
    let many = plan.waves.len() > 1;
    for (number, wave) in plan.waves.iter().enumerate() {
        if many {
            text.push_str(&format!("wave {} of {}\n", number + 1, plan.waves.len()));
        }
        for job in &wave.jobs {
            text.push_str(&paragraph(job, width));
        }
    }
    for warning in &plan.warnings {
        text.push_str(&format!("warning: {warning}\n"));
    }
    text
}

fn paragraph(job: &FioJob, width: usize) -> String {
    let Some(first) = job.streams.first() else { return String::new() };
    let spec = &first.spec;
    let clones: u32 = job.streams.iter().map(|stream| stream.spec.jobs).sum();
    let mut lines = vec![requests(spec), way(spec, clones), amount(spec), files(job, first)];
    lines.extend(pace(spec));
    lines.extend(durability(spec));
    lines.push(end(spec));
    let reported = match (clones, job.group_reporting) {
        (1, _) => format!("reported in group {}", job.group),
        (_, true) => format!("clones reported as one, in group {}", job.group),
        (_, false) => format!("clones reported one by one, in group {}", job.group),
    };
    lines.push(reported);
    let mut text = format!("{}\n", job.name);
    if let Some(description) = &job.description {
        text.push_str(&format!("  {description}\n"));
    }
    for line in lines {
        let room = width.saturating_sub(2).max(20);
        let mut short: String = line.chars().take(room).collect();
        if line.chars().count() > room {
            short = line.chars().take(room - 3).collect::<String>() + "...";
        }
        text.push_str(&format!("  {short}\n"));
    }
    text
}

fn requests(spec: &IoSpec) -> String {
    let what = match spec.mix {
        Mix::Read => "reads".to_owned(),
        Mix::Write => "writes".to_owned(),
        Mix::Both { read_pct } => format!("reads and writes {read_pct}:{}", 100 - read_pct),
        Mix::FlushOnly(_) => "flushes".to_owned(),
        Mix::Trim => "trims".to_owned(),
        Mix::TrimWrite => "trims, each with a write behind it".to_owned(),
    };
    let order = match spec.access {
        _ if spec.variation.distribution.is_some() => "unevenly random",
        Access::Sequential => "sequential",
        Access::Uniform => "random",
        Access::Coverage => "random, each block once in a pass,",
        Access::Zipfian(_) => "zipfian",
    };
    let step = match spec.variation.step {
        iostrata_plan::Step::None => String::new(),
        iostrata_plan::Step::Run(count) => format!(", {count} in a row"),
        iostrata_plan::Step::Repeat(count) => format!(", each {count} times"),
        iostrata_plan::Step::Skip(bytes) => format!(", {} left out", size(bytes)),
        iostrata_plan::Step::Back(bytes) => format!(", {} back", size(bytes)),
    };
    match spec.variation.call {
        Some(FileCall::Create) => "files made, one by one".to_owned(),
        Some(FileCall::Stat) => "stat of one file after the other".to_owned(),
        Some(FileCall::Delete) => "files deleted, one by one".to_owned(),
        _ => format!("{} {order} {what}{step}", blocks(spec)),
    }
}

fn blocks(spec: &IoSpec) -> String {
    match &spec.variation.blocks {
        Blocks::Fixed => size(u64::from(spec.block_bytes)),
        Blocks::ByKind { read, write } if read == write => sizes(read),
        Blocks::ByKind { read, write } => format!("{} (writes {})", sizes(read), sizes(write)),
    }
}

fn sizes(sizes: &BlockSizes) -> String {
    match sizes {
        BlockSizes::One(bytes) => size(u64::from(*bytes)),
        BlockSizes::Range { least, most } => {
            format!("{} to {}", size(u64::from(*least)), size(u64::from(*most)))
        }
        BlockSizes::Shares(shares) => {
            let all: f64 = shares.iter().map(|share| f64::from(share.weight)).sum();
            let one = |share: &iostrata_plan::BlockShare| {
                let percent = f64::from(share.weight) / all.max(1.0) * 100.0;
                format!("{} {percent:.0} %", size(u64::from(share.bytes)))
            };
            shares.iter().map(one).collect::<Vec<_>>().join(", ")
        }
    }
}

fn size(bytes: u64) -> String {
    units::bytes(bytes as f64)
}

fn way(spec: &IoSpec, clones: u32) -> String {
    let workers = if spec.processes { "processes" } else { "threads" };
    let clones = match clones {
        1 if spec.processes => "one process".to_owned(),
        1 => "one thread".to_owned(),
        clones => format!("{clones} {workers}"),
    };
    let cache = match (spec.api, spec.direct) {
        (IoApi::Null, _) => "nothing is touched",
        (_, true) => "direct",
        (_, false) => "buffered",
    };
    let batch = match spec.variation.reap_min {
        1 => String::new(),
        least => format!(", {least} completions at a time"),
    };
    format!("{}, {cache}, {clones}, {} in flight each{batch}", spec.api.name(), spec.depth)
}

fn amount(spec: &IoSpec) -> String {
    let moved = match spec.variation.io_bytes_max {
        Some(bytes) => format!("moves {}", size(bytes)),
        None => "goes over them until its time is over".to_owned(),
    };
    let offset = match spec.variation.offset_bytes {
        0 => String::new(),
        bytes => format!(" from {} on", size(bytes)),
    };
    let files =
        if spec.files == 1 { "one file".to_owned() } else { format!("{} files", spec.files) };
    format!("uses {} of {files}{offset}, {moved}", size(spec.size_bytes))
}

fn files(job: &FioJob, first: &FioStream) -> String {
    if first.spec.api == IoApi::Null {
        return "no files".to_owned();
    }
    let mut names: Vec<String> = Vec::new();
    for path in job.streams.iter().flat_map(|stream| &stream.paths) {
        let name = path.display().to_string();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let shared = match first.spec.variation.sharing {
        Sharing::Whole if first.spec.jobs > 1 => ", shared",
        _ => "",
    };
    let fate = if job.unlink { "removed at the end" } else { "kept" };
    format!("files {}{shared}; {fate} if made here", names.join(" "))
}

fn pace(spec: &IoSpec) -> Option<String> {
    let mut parts = Vec::new();
    let spaced = |process| match process {
        RateProcess::Fixed => "evenly spaced",
        RateProcess::Poisson => "at random moments",
    };
    match spec.pacing {
        Pacing::Closed => {}
        Pacing::Open { rate_iops, process } => {
            let rate = units::count(rate_iops);
            parts.push(format!("{rate} requests/s each, {}", spaced(process)));
        }
        Pacing::Directions { read_iops, write_iops, process } => {
            let of = |what: &str, rate: Option<f64>| {
                rate.map(|rate| {
                    format!("{} {what}/s each, {}", units::count(rate), spaced(process))
                })
            };
            parts.extend(of("reads", read_iops).into_iter().chain(of("writes", write_iops)));
        }
    }
    if let Some(pause) = spec.variation.pause {
        let length = units::seconds(pause.length.as_secs_f64());
        parts.push(format!("pauses {length} after every {} requests", pause.every));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn durability(spec: &IoSpec) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(flush) = spec.flush {
        let call = match flush.method {
            FlushMethod::Fsync => "fsync",
            FlushMethod::Fdatasync => "fdatasync",
            FlushMethod::SyncFileRange(_) => "sync_file_range",
        };
        parts.push(format!("{call} after every {} writes", flush.every));
    }
    match spec.sync {
        SyncWrites::None => {}
        SyncWrites::Sync => parts.push("O_SYNC".to_owned()),
        SyncWrites::Dsync | SyncWrites::RwfDsync => parts.push("O_DSYNC".to_owned()),
    }
    if spec.variation.end_flush {
        parts.push("one fsync at the end".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn end(spec: &IoSpec) -> String {
    let seconds = |time: std::time::Duration| units::seconds(time.as_secs_f64());
    let mut text = String::new();
    if !spec.variation.start_delay.is_zero() {
        text.push_str(&format!("begins after {}, ", seconds(spec.variation.start_delay)));
    }
    if !spec.variation.ramp_time.is_zero() {
        text.push_str(&format!("is counted after {} more, ", seconds(spec.variation.ramp_time)));
    }
    let most = if spec.variation.io_bytes_max.is_some() { "at most " } else { "" };
    text.push_str(&format!("runs {most}{}", seconds(spec.runtime.unwrap_or(spec.point_time))));
    if spec.variation.ends_window {
        text.push_str(", and ends the jobs that run with it");
    }
    text
}
