//! `iostrata simulate`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use iostrata_innodb::{FlushWriteLimit, PolicyName};
use iostrata_plan::disk::DiskSpec;
use iostrata_run::KernelThen;
use iostrata_sim::flush::PageAccess;
use iostrata_stats::units::parse_duration;

use super::value::List;
use super::{SimulateCommon, value};

/// Arguments of `iostrata simulate`.
#[derive(Args, Debug)]
pub struct SimulateArgs {
    #[command(subcommand)]
    pub action: SimulateAction,
}

/// What to simulate.
#[derive(Debug, Subcommand)]
pub enum SimulateAction {
    /// Compare flushing policies over an hour of a load: which ones stall
    ///
    /// The policies are the engine's own; pool, redo, users and device are models. The default is a
    /// volume limited to 1,500 reads and 1,500 writes per second, with 32 users. Accesses no
    /// device.
    Flush(Box<FlushArgs>),
    /// The effect of a longer block queue on inserts, on disks and on flash, then and today
    ///
    /// The load of 2009: inserts into a MyISAM table with three random indexes, whose pages the
    /// kernel writes back through its block queue. Each queue size is combined with each device and
    /// kernel at the same index sizes. Accesses no device.
    Queue(QueueArgs),
    /// Anything else, so that the error can list what exists.
    #[command(external_subcommand)]
    Unknown(Vec<OsString>),
}

/// Arguments of `iostrata simulate queue`.
#[derive(Args, Debug)]
pub struct QueueArgs {
    /// Queue sizes to compare, separated by commas [default: 128,1024,2048,10000,100000]
    #[arg(long, value_name = "LIST", value_parser = queue_sizes)]
    pub nr_requests: Option<List<u32>>,
    /// Devices to compare, separated by commas; an option of a device (`queue=1`) follows it. May
    /// be repeated [default: hdd-15k, the same with queue=1, raid10-hdd,spindles=34,cache=off,
    /// ssd-sata]
    #[arg(long, value_name = "LIST", value_parser = disks)]
    pub device: Vec<List<DiskSpec>>,
    /// Kernel of block queue and write-back: 2009, today, both
    #[arg(long, value_name = "WHICH", default_value = "both", value_parser = kernels)]
    pub kernel: List<KernelThen>,
    /// Minimum virtual time over all runs; each has at least three replicates
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = value::bound)]
    pub span: Duration,
    /// Also simulate with a concurrent reader
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "1", value_parser = value::switch)]
    pub reader: bool,
    #[command(flatten)]
    pub common: SimulateCommon,
}

/// Largest queue that is simulated.
const QUEUE_SIZE_MAX: u32 = 10_000_000;

/// `128,1024`, rising, each once.
fn queue_sizes(text: &str) -> Result<List<u32>, String> {
    let one = |part: &str| {
        let digits = part.trim().replace('_', "");
        let size = digits.parse().ok().filter(|size| (1..=QUEUE_SIZE_MAX).contains(size));
        size.ok_or_else(|| {
            format!("`{part}` is no queue size; take 1 to {QUEUE_SIZE_MAX}, as in 128,100000")
        })
    };
    let mut sizes = text.split(',').map(one).collect::<Result<Vec<_>, String>>()?;
    sizes.sort_unstable();
    sizes.dedup();
    Ok(List(sizes))
}

/// `hdd-15k,queue=1,ssd-sata` is two devices: a part with `=` belongs to the one before it.
fn disks(text: &str) -> Result<List<DiskSpec>, String> {
    let mut texts: Vec<String> = Vec::new();
    for part in text.split(',') {
        let is_option = part.contains('=') && !part.trim_start().starts_with("probe:");
        match texts.last_mut() {
            Some(last) if is_option => {
                last.push(',');
                last.push_str(part);
            }
            _ => texts.push(part.to_owned()),
        }
    }
    let parse = |text: &String| text.parse().map_err(|error| format!("{error}"));
    Ok(List(texts.iter().map(parse).collect::<Result<_, String>>()?))
}

fn kernels(text: &str) -> Result<List<KernelThen>, String> {
    match text {
        "both" => Ok(List(KernelThen::ALL.to_vec())),
        "2009" => Ok(List(vec![KernelThen::Y2009])),
        "today" => Ok(List(vec![KernelThen::Today])),
        _ => Err("write 2009, today or both".to_owned()),
    }
}

/// Arguments of `iostrata simulate flush`.
#[derive(Args, Clone, Debug)]
pub struct FlushArgs {
    /// Policies to compare, separated by commas, or `all`
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = policies)]
    pub policy: List<PolicyName>,
    /// Run directory of `tpcc run` or `oltp ... run` with the load and the settings to simulate;
    /// other options change the scenario. Options of the load (--pages-per-txn, --redo-per-txn,
    /// --cpu-per-txn, --processors, --data, --distribution) and the device replace recorded values
    #[arg(long, value_name = "RUN")]
    pub from: Option<PathBuf>,
    /// Size of the redo [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    pub redo: Option<u64>,
    /// Size of the buffer pool [default: 12G]
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    pub pool: Option<u64>,
    /// The disk, as for `iostrata disk start` [default: nvme]
    #[arg(long, value_name = "MODEL")]
    pub device: Option<DiskSpec>,
    /// Limit of reads and of writes per second [default: 1500; none with --device or --from]
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    pub iops_limit: Option<u32>,
    /// Another limit from this time on: TIME=IOPS, such as 30m=750. May be repeated
    #[arg(long, value_name = "TIME=IOPS", value_parser = timed)]
    pub limit_at: Vec<TimedValue>,
    /// Virtual time of each policy
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = value::bound)]
    pub span: Duration,
    /// Users of a closed loop: each starts a transaction when its last one is durable [default: 32]
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>, conflicts_with = "rate")]
    pub users: Option<u32>,
    /// Open arrival rate, transactions per second, instead of users
    #[arg(long, value_name = "TPS", value_parser = value::number)]
    pub rate: Option<f64>,
    /// A multiple of the load from this time on: TIME=FACTOR, such as 30m=2. May be repeated
    #[arg(long, value_name = "TIME=FACTOR", value_parser = timed)]
    pub load_at: Vec<TimedValue>,
    /// Pages changed per transaction [default: 6]
    #[arg(long, value_name = "N", value_parser = value::number)]
    pub pages_per_txn: Option<f64>,
    /// Redo per transaction [default: 5000]
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    pub redo_per_txn: Option<u64>,
    /// CPU time per transaction [default: 500us]
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    pub cpu_per_txn: Option<Duration>,
    /// Processors [default: 4]
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    pub processors: Option<u32>,
    /// Size of the data [default: 8G]
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    pub data: Option<u64>,
    /// Distribution of changed pages: uniform, zipf:POWER, hot:DATA/CHANGES in percent [default:
    /// zipf:0.9]
    #[arg(long, value_name = "HOW", value_parser = access)]
    pub distribution: Option<PageAccess>,
    /// History list length above which writers are delayed
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    pub max_purge_lag: Option<u32>,
    /// Purge threads; with 0 the master loop of old policies purges
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    pub purge_threads: Option<u32>,
    /// Cap of the historical policies: policy, capped, free, auto-raised
    #[arg(long, value_name = "WHICH", value_parser = write_limit)]
    pub flush_write_limit: Option<FlushWriteLimit>,
    /// An engine setting used by the policies. May be repeated [default: io_capacity=200 and
    /// io_capacity_max=2000, the servers' defaults for most of their history]
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    #[command(flatten)]
    pub common: SimulateCommon,
}

/// Something at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedValue {
    /// The moment, in seconds.
    pub at_s: f64,
    /// What it becomes.
    pub value: f64,
}

/// `adaptive,steady`, each once, or `all`.
fn policies(text: &str) -> Result<List<PolicyName>, String> {
    let mut found: Vec<PolicyName> = Vec::new();
    for word in text.split(',').map(str::trim) {
        let is_named = |name: &&PolicyName| name.word().eq_ignore_ascii_case(word);
        match PolicyName::ALL.iter().find(is_named) {
            _ if word == "all" => found.extend(PolicyName::ALL),
            Some(name) => found.push(*name),
            None => {
                let all = PolicyName::WORDS.join(", ");
                return Err(format!("`{word}` is no policy; there are all, {all}"));
            }
        }
    }
    let mut unique = Vec::new();
    found.into_iter().for_each(|name| {
        if !unique.contains(&name) {
            unique.push(name);
        }
    });
    Ok(List(unique))
}

fn write_limit(text: &str) -> Result<FlushWriteLimit, String> {
    let found = FlushWriteLimit::ALL.iter().find(|limit| limit.word() == text);
    let all = FlushWriteLimit::WORDS.join(", ");
    found.copied().ok_or_else(|| format!("`{text}` caps nothing; write one of {all}"))
}

fn setting(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=');
    let pair = pair.ok_or_else(|| format!("`{text}` sets nothing; write NAME=VALUE"))?;
    Ok((pair.0.trim().to_owned(), pair.1.trim().to_owned()))
}

/// `30m=750`.
fn timed(text: &str) -> Result<TimedValue, String> {
    let wrong = || format!("`{text}` is no moment with a value; write for example 30m=750");
    let (at, value) = text.split_once('=').ok_or_else(wrong)?;
    let at = parse_duration(at.trim()).map_err(|error| error.to_string())?;
    let value = value.trim().parse().ok().filter(|value: &f64| value.is_finite());
    Ok(TimedValue { at_s: at.as_secs_f64(), value: value.ok_or_else(wrong)? })
}

/// `uniform`, `zipf:0.9`, `hot:10/90`.
fn access(text: &str) -> Result<PageAccess, String> {
    let wrong = || {
        format!(
            "`{text}` is no distribution; write uniform, zipf:POWER, or hot:DATA/CHANGES in \
                 percent, as in hot:10/90"
        )
    };
    let number = |text: &str| text.trim().parse::<f64>().map_err(|_| wrong());
    match text.split_once(':') {
        None if text == "uniform" => Ok(PageAccess::Uniform),
        Some(("zipf", power)) => Ok(PageAccess::Zipf(number(power)?)),
        Some(("hot", shares)) => {
            let (data, changes) = shares.split_once('/').ok_or_else(wrong)?;
            let (data_pct, changes_pct) = (number(data)?, number(changes)?);
            Ok(PageAccess::HotSet { data_pct, changes_pct })
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_follow_their_device() {
        let List(found) = disks("raid10-hdd,spindles=2,queue=1,ssd-sata,probe:/a=b").unwrap();
        let texts: Vec<String> = found.iter().map(DiskSpec::to_string).collect();
        assert_eq!(texts, ["raid10-hdd,queue=1,spindles=2", "ssd-sata", "probe:/a=b"]);
        assert!(disks("hdd-15").unwrap_err().contains("did you mean `hdd-15k`"));
        assert!(disks("queue=1").unwrap_err().contains("`queue=1` is not a disk model"));
    }

    #[test]
    fn queue_sizes_rise() {
        assert_eq!(queue_sizes("2048, 128,128").unwrap(), List(vec![128, 2048]));
        for wrong in ["0", "128,", "-1", "many", "99999999999"] {
            assert!(queue_sizes(wrong).unwrap_err().contains("take 1 to"), "{wrong}");
        }
    }

    #[test]
    fn policies_come_once_and_an_unknown_one_lists_them() {
        assert_eq!(policies("all").unwrap().0.len(), PolicyName::ALL.len());
        let two = policies("steady, mariadb,steady").unwrap().0;
        assert_eq!(two, [PolicyName::Steady, PolicyName::Mariadb]);
        assert!(policies("steadier").unwrap_err().contains("page-cleaner-84"));
    }

    #[test]
    fn moments_and_distributions_are_read() {
        assert_eq!(timed("30m=750").unwrap(), TimedValue { at_s: 1800.0, value: 750.0 });
        assert!(timed("750").unwrap_err().contains("30m=750"));
        assert_eq!(access("zipf:0.9").unwrap(), PageAccess::Zipf(0.9));
        let hot = PageAccess::HotSet { data_pct: 10.0, changes_pct: 90.0 };
        assert_eq!(access("hot:10/90").unwrap(), hot);
        assert!(access("gauss").unwrap_err().contains("hot:10/90"));
    }
}
