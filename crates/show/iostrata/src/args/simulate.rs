//! `iostrata simulate`.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, Subcommand};
use iostrata_plan::disk::DiskSpec;
use iostrata_run::KernelThen;

use super::simulate_flush::FlushArgs;
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
    /// What each flushing policy does to a load in an hour: who stops, who does not
    ///
    /// The policies are the engine's own; pool, redo, users and device are a model. By default a
    /// volume held to 1,500 requests per second each way under 32 users. Touches no device.
    Flush(Box<FlushArgs>),
    /// What a longer block queue does for inserts, on disks and on flash, then and today
    ///
    /// The load of 2009: inserts into a MyISAM table with three random indexes, whose pages the
    /// kernel writes back through its block queue. Each queue size meets each device under each
    /// kernel at the same index sizes. Touches no device.
    Queue(QueueArgs),
    /// Anything else, so that the error can say what there is.
    #[command(external_subcommand)]
    Unknown(Vec<OsString>),
}

impl SimulateAction {
    /// Whether notes on stderr were asked not to be.
    pub fn is_quiet(&self) -> bool {
        match self {
            Self::Flush(args) => args.common.printing.quiet,
            Self::Queue(args) => args.common.printing.quiet,
            Self::Unknown(_) => true,
        }
    }
}

/// Arguments of `iostrata simulate queue`.
#[derive(Args, Debug)]
pub struct QueueArgs {
    /// Queue sizes to compare, separated by commas [default: 128,1024,2048,10000,100000]
    #[arg(long, value_name = "LIST", value_parser = queue_sizes)]
    pub nr_requests: Option<List<u32>>,
    /// Devices to compare, separated by commas; an option of a device (`queue=1`) follows it. May
    /// be given several times [default: hdd-15k, the same with queue=1,
    /// raid10-hdd,spindles=34,cache=off, ssd-sata]
    #[arg(long, value_name = "LIST", value_parser = disks)]
    pub device: Vec<List<DiskSpec>>,
    /// Whose block queue and write-back: 2009, today, both
    #[arg(long, value_name = "WHICH", default_value = "both", value_parser = kernels)]
    pub kernel: List<KernelThen>,
    /// Virtual time to simulate at least, over all runs; three replicates of each are the fewest
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = value::bound)]
    pub span: Duration,
    /// Whether to look a second time with a reader beside the inserts
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
}
