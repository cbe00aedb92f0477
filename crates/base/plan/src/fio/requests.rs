//! Which requests a job makes: direction, order, sizes.
//!
//! Invariant: what the job never does has no size: a job that only reads has one kind of blocks.

use crate::variation::{
    BlockShare, BlockSizes, Blocks, Distribution, FileOrder, Step, Strides, Zone,
};
use crate::{Access, IoSpec, Memory, Mix, Rw, Words, ZipfTheta};

use super::error::Why;
use super::settings::Settings;
use super::value::{self, Base, by_direction, range};

const SHARES_MAX: usize = 64;

/// The directions and the order of `rw=`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RequestOrder {
    pub mix: Mix,
    pub random: bool,
    pub step: Step,
}

/// The values of `rw`, its suffix, `rw_sequencer` and `rwmix...`.
pub(super) fn direction(settings: &Settings) -> RequestOrder {
    let base = settings.base();
    let read = RequestOrder { mix: Mix::Read, random: false, step: Step::None };
    let order = settings.value("rw", |text| {
        let (word, suffix) = match text.split_once(':') {
            Some((word, suffix)) => (word.trim(), Some(suffix.trim())),
            None => (text.trim(), None),
        };
        let (mix, random) = match (word, Rw::of(word)) {
            ("trim", _) => (Mix::Trim, false),
            ("randtrim", _) => (Mix::Trim, true),
            ("trimwrite", _) => (Mix::TrimWrite, false),
            ("randtrimwrite", _) => (Mix::TrimWrite, true),
            (_, Some(rw)) if rw.is_mixed() => (mixed(settings), rw.is_random()),
            (_, Some(rw)) => (rw.mix(0), rw.is_random()),
            (_, None) => {
                let known = Rw::names().join(", ");
                let why = format!(
                    "there is no such direction; use one of {known}, trim, randtrim, \
                                   trimwrite, randtrimwrite"
                );
                return Err(Why::new(why));
            }
        };
        let step = match suffix {
            None => Step::None,
            Some(suffix) => step(settings, suffix, random, base)?,
        };
        Ok(RequestOrder { mix, random, step })
    });
    order.unwrap_or(read)
}

/// Percentage of random requests, for reads and for writes or trims; `None` where all are, or none
/// of any direction, by the second value.
pub(super) fn random_share(settings: &Settings, mix: Mix) -> (Option<[u8; 2]>, bool) {
    let shares = settings.value("percentage_random", |text| {
        let one = |part: Option<&str>| part.map_or(Ok(100), value::share);
        let [read, write, trim] = by_direction(text);
        Ok([one(read)?, one(if mix.trims() { trim } else { write })?])
    });
    let [read, write] = shares.unwrap_or([100; 2]);
    let occurring: Vec<u8> = match mix {
        Mix::Read => vec![read],
        Mix::Both { .. } => vec![read, write],
        _ => vec![write],
    };
    if occurring.iter().all(|share| *share == 0) {
        return (None, true);
    }
    let all = occurring.iter().all(|share| *share == 100);
    ((!all).then_some([read, write]), false)
}

/// What random offsets are multiples of, where that is not the smallest block.
pub(super) fn align(
    settings: &Settings,
    mix: Mix,
    blocks: &Blocks,
    least: u32,
) -> Option<[u32; 2]> {
    let base = settings.base();
    let least = match blocks {
        Blocks::Fixed => [least; 2],
        Blocks::ByKind { read, write } => [read.least(), write.least()],
    };
    let given = settings.value("ba", |text| {
        let one = |part: Option<&str>| part.map(|part| value::size(part, base)).transpose();
        let [read, write, trim] = by_direction(text);
        Ok([one(read)?, one(if mix.trims() { trim } else { write })?])
    })?;
    let or_least = |at: usize| match given[at] {
        None | Some(0) => least[at],
        Some(bytes) => u32::try_from(bytes).unwrap_or(u32::MAX),
    };
    let align = [or_least(0), or_least(1)];
    (align != least).then_some(align)
}

fn mixed(settings: &Settings) -> Mix {
    let Some(assignment) = settings.later("rwmixread", "rwmixwrite") else {
        return Mix::Both { read_pct: 50 };
    };
    let share = value::share(&assignment.value).unwrap_or_else(|_| {
        settings.refuse(assignment, Why::new("it is a share in percent; use 0 to 100"));
        50
    });
    let is_read = assignment.entry.name == "rwmixread";
    Mix::Both { read_pct: if is_read { share } else { 100 - share } }
}

fn step(settings: &Settings, suffix: &str, random: bool, base: Base) -> Result<Step, Why> {
    if !random {
        let why = "the gap of a sequential job is a size, such as rw=read:4k or rw=read:-8k";
        let (size, gap): (&str, fn(u64) -> Step) = match suffix.strip_prefix('-') {
            Some(size) => (size, Step::Back),
            None => (suffix, Step::Skip),
        };
        return value::size(size, base).map(gap).map_err(|_| Why::new(why));
    }
    let count = value::count(suffix).ok().filter(|count| *count > 0);
    let count = count.ok_or_else(|| Why::new("the suffix of a random job is a count above 0"))?;
    let sequencer = settings.get("rw_sequencer").map_or("sequential", |one| one.value.as_str());
    match sequencer {
        _ if count == 1 => Ok(Step::None),
        "sequential" => Ok(Step::Run(count)),
        "identical" => Ok(Step::Repeat(count)),
        _ => Err(Why::new("rw_sequencer is sequential or identical")),
    }
}

/// Block sizes, and the smallest of them.
pub(super) fn blocks(settings: &Settings, mix: Mix) -> (Blocks, u32) {
    let base = settings.base();
    let sizes = |name, one: &dyn Fn(&str) -> Result<BlockSizes, Why>| {
        let by_direction = |text: &str| -> Result<Vec<Option<BlockSizes>>, Why> {
            by_direction(text).into_iter().map(|part| part.map(one).transpose()).collect()
        };
        settings.value(name, by_direction).unwrap_or_else(|| vec![None, None, None])
    };
    // As in fio the most detailed one counts, in whichever order they stand.
    let split = sizes("bssplit", &|part| shares(part, base));
    let needs_more = |so_far: &[Option<BlockSizes>]| so_far.iter().any(Option::is_none);
    let none = || vec![None, None, None];
    let range =
        if needs_more(&split) { sizes("bsrange", &|part| between(part, base)) } else { none() };
    let first = |one: Vec<Option<BlockSizes>>, other: Vec<Option<BlockSizes>>| {
        one.into_iter().zip(other).map(|(one, other)| one.or(other)).collect::<Vec<_>>()
    };
    let detailed = first(split, range);
    let plain = |part: &str| value::block(part, base).map(BlockSizes::One);
    let one = if needs_more(&detailed) { sizes("bs", &plain) } else { none() };
    let given = first(detailed, one);
    let of = |at: usize| given[at].clone().unwrap_or(BlockSizes::One(4096));
    let (read, write) = match mix {
        Mix::Read => (of(0), of(0)),
        Mix::Write | Mix::FlushOnly(_) => (of(1), of(1)),
        Mix::Trim | Mix::TrimWrite => (of(2), of(2)),
        Mix::Both { .. } => (of(0), of(1)),
    };
    let least = read.least().min(write.least());
    if read == write && matches!(read, BlockSizes::One(_)) {
        return (Blocks::Fixed, least);
    }
    (Blocks::ByKind { read, write }, least)
}

fn between(text: &str, base: Base) -> Result<BlockSizes, Why> {
    let (low, high) = range(text);
    let (low, high) = (value::block(low, base)?, value::block(high, base)?);
    let (least, most) = (low.min(high), low.max(high));
    Ok(match least == most {
        true => BlockSizes::One(least),
        false => BlockSizes::Range { least, most },
    })
}

/// `4k/10:64k/:8k`: sizes with their percent; those without share what is left.
fn shares(text: &str, base: Base) -> Result<BlockSizes, Why> {
    let mut parts = Vec::new();
    for part in text.split(':').map(str::trim).filter(|part| !part.is_empty()) {
        let (size, percent) = part.split_once('/').unwrap_or((part, ""));
        let percent = match percent.trim() {
            "" => None,
            text => Some(value::count(text.strip_suffix('%').unwrap_or(text))?),
        };
        // As fio has it, of a range the first size counts.
        let size = size.split_once('-').map_or(size, |(first, _)| first);
        parts.push((value::block(size, base)?, percent));
    }
    let given: u64 = parts.iter().filter_map(|(_, percent)| *percent).map(u64::from).sum();
    if parts.is_empty() || parts.len() > SHARES_MAX {
        return Err(Why::new(format!("write 1 to {SHARES_MAX} sizes, such as 4k/10:64k/90")));
    }
    if given > 100 {
        return Err(Why::new(format!("the shares add up to {given} percent; use 100 at most")));
    }
    let blanks = parts.iter().filter(|(_, percent)| percent.is_none()).count() as u32;
    // Whole weights: a hundred times as many parts as sizes without a share.
    let rest = 100 - given as u32;
    let weight = |percent: Option<u32>| percent.map_or(rest, |percent| percent * blanks.max(1));
    let shares: Vec<BlockShare> = parts
        .into_iter()
        .map(|(bytes, percent)| BlockShare { bytes, weight: weight(percent) })
        .filter(|share| share.weight > 0)
        .collect();
    match shares.as_slice() {
        [] => Err(Why::new("no size has a share; use for example 4k/10:64k/90")),
        [one] => Ok(BlockSizes::One(one.bytes)),
        _ => Ok(BlockSizes::Shares(shares)),
    }
}

/// Where requests go.
pub(super) fn access(settings: &Settings, random: bool) -> (Access, Option<Distribution>) {
    if !random {
        return (Access::Sequential, None);
    }
    let drawn = settings.value("random_distribution", |text| {
        let (word, input) = text.split_once(':').unwrap_or((text, ""));
        // The middle of zipf and pareto can be given behind another colon.
        let first = input.split(':').next().unwrap_or_default().trim();
        let number = |usual: f64| match first {
            "" => Ok(usual),
            first => value::decimal(first),
        };
        let drawn = match word.trim() {
            "random" => return Ok(None),
            "zipf" => (Access::Zipfian(ZipfTheta(number(1.1)?)), None),
            "pareto" => (Access::Uniform, Some(pareto(number(0.2)?)?)),
            "normal" => (Access::Uniform, Some(normal(number(0.0)?)?)),
            "zoned" => (Access::Uniform, Some(Distribution::Zoned(zones(input)?))),
            // Its shares are known when the size of the file is: see `set_absolute_zones`.
            "zoned_abs" => (Access::Uniform, Some(Distribution::Zoned(Vec::new()))),
            _ => {
                let why = "there is no such distribution here; use random, zipf:THETA, pareto:H, \
                           normal:DEVIATION, zoned:REQUESTS/SIZE:... or zoned_abs:REQUESTS/BYTES:...";
                return Err(Why::new(why));
            }
        };
        Ok(Some(drawn))
    });
    if let Some(Some(drawn)) = drawn {
        return drawn;
    }
    let drawn = settings.switch("norandommap").unwrap_or(false);
    (if drawn { Access::Uniform } else { Access::Coverage }, None)
}

/// The zones that requests keep to, of the only file; as in fio, a size of zones alone turns them
/// on.
pub(super) fn strides(settings: &Settings, files: u32) -> Option<Strides> {
    let mode = settings.value("zonemode", |text| match text {
        "none" => Ok(Some(false)),
        "strided" => Ok(Some(true)),
        "zbd" => Err(Why::new("zoned devices are not known; use one without zones")),
        _ => Err(Why::new("use none or strided")),
    });
    let base = settings.base();
    let size = |name| settings.value(name, |text| value::size(text, base)).filter(|size| *size > 0);
    let moved_bytes = size("zonesize");
    if files > 1 || matches!(mode, Some(Some(false))) {
        return None;
    }
    let Some(moved_bytes) = moved_bytes else {
        if let (Some(_), Some(assignment)) = (mode, settings.peek("zonemode")) {
            settings.refuse(assignment, Why::new("zones have no size; say zonesize="));
        }
        return None;
    };
    let zone_bytes = size("zonerange").unwrap_or(moved_bytes);
    Some(Strides { moved_bytes, zone_bytes, skipped_bytes: size("zoneskip").unwrap_or(0) })
}

fn pareto(input: f64) -> Result<Distribution, Why> {
    match input > 0.0 && input < 1.0 {
        true => Ok(Distribution::Pareto(input)),
        false => Err(Why::new("the input of pareto is above 0 and below 1")),
    }
}

fn normal(deviation: f64) -> Result<Distribution, Why> {
    match deviation > 0.0 && deviation <= 100.0 {
        true => Ok(Distribution::Normal(deviation)),
        false => Err(Why::new("the deviation is above 0 and at most 100 percent")),
    }
}

/// `60/10:30/20:10/`: requests and sizes in percent, one zone behind the other; those without a
/// number divide what is left.
fn zones(text: &str) -> Result<Vec<Zone>, Why> {
    let parts = zone_parts(text, &value::decimal)?;
    let blank = [0, 1].map(|at| {
        let given: f64 = parts.iter().filter_map(|part| part[at]).sum();
        (100.0 - given) / parts.iter().filter(|part| part[at].is_none()).count().max(1) as f64
    });
    let zone = |[requests, size]: [Option<f64>; 2]| Zone {
        requests_pct: requests.unwrap_or(blank[0]),
        size_pct: size.unwrap_or(blank[1]),
    };
    let zones: Vec<Zone> = parts.into_iter().map(zone).collect();
    let sums = zones.iter().fold((0.0, 0.0), |(requests, size), zone| {
        (requests + zone.requests_pct, size + zone.size_pct)
    });
    let is_share = |zone: &Zone| zone.requests_pct >= 0.0 && zone.size_pct > 0.0;
    let is_whole = |sum: f64| (sum - 100.0).abs() < 1e-6;
    match zones.len() <= SHARES_MAX
        && zones.iter().all(is_share)
        && is_whole(sums.0)
        && is_whole(sums.1)
    {
        true => Ok(zones),
        false => Err(Why::new("requests and sizes of the zones each add up to 100 percent")),
    }
}

/// The numbers of zones: requests in a hundred, and what `size` makes of the rest.
fn zone_parts(
    text: &str,
    size: &dyn Fn(&str) -> Result<f64, Why>,
) -> Result<Vec<[Option<f64>; 2]>, Why> {
    if text.contains(',') {
        return Err(Why::new("zones are those of both directions; write them once"));
    }
    let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let parts = text.split(':').map(|part| {
        let (requests, bytes) = part.split_once('/').unwrap_or((part, ""));
        let requests = given(requests).map(|text| value::decimal(&text)).transpose()?;
        Ok([requests, given(bytes).map(|text| size(&text)).transpose()?])
    });
    parts.collect()
}

/// Gives zones whose sizes are bytes their shares of a file.
pub(super) fn set_absolute_zones(settings: &Settings, spec: &mut IoSpec) {
    let (base, file_bytes) = (settings.base(), spec.file_bytes());
    let Some(drawn) = &mut spec.variation.distribution else { return };
    let zones = settings.value("random_distribution", |text| {
        let Some(("zoned_abs", zones)) = text.split_once(':') else { return Ok(None) };
        absolute_zones(zones, base, file_bytes as f64).map(Some)
    });
    if let Some(Some(zones)) = zones {
        *drawn = Distribution::Zoned(zones);
    }
}

/// `60/20g:30/100g:10/`: requests in percent and sizes in bytes; the last may have what is left.
fn absolute_zones(text: &str, base: Base, file_bytes: f64) -> Result<Vec<Zone>, Why> {
    let size = |text: &str| value::size(text, base).map(|bytes| bytes as f64);
    let parts = zone_parts(text, &size)?;
    let given: f64 = parts.iter().filter_map(|[requests, _]| *requests).sum();
    let blanks = parts.iter().filter(|[requests, _]| requests.is_none()).count();
    if parts.len() > SHARES_MAX || given > 100.0 + 1e-6 || (blanks == 0 && given < 100.0 - 1e-6) {
        return Err(Why::new("requests of the zones add up to 100 percent"));
    }
    let (mut zones, mut at) = (Vec::new(), 0.0);
    for [requests, bytes] in parts {
        let left = file_bytes - at;
        let bytes = bytes.map_or(left, |bytes| bytes.min(left));
        if bytes <= 0.0 {
            return Err(Why::new("the zones are larger than the file; make it larger"));
        }
        at += bytes;
        let requests_pct = requests.unwrap_or((100.0 - given) / blanks.max(1) as f64);
        zones.push(Zone { requests_pct, size_pct: bytes * 100.0 / file_bytes });
    }
    // As in fio, nothing behind the last zone is touched.
    if at < file_bytes {
        zones.push(Zone { requests_pct: 0.0, size_pct: (file_bytes - at) * 100.0 / file_bytes });
    }
    Ok(zones)
}

/// What requests read into and write from. A file behind a colon is where fio finds huge pages.
pub(super) fn memory(settings: &Settings) -> Memory {
    let memory = settings.value("mem", |text| {
        let known = text.split(':').next().and_then(|word| Memory::of(word.trim()));
        known.ok_or_else(|| Why::new("there is no such memory here; use malloc or mmaphuge"))
    });
    memory.unwrap_or_default()
}

/// Which of several files is next.
pub(super) fn file_order(settings: &Settings, files: u32) -> FileOrder {
    if files < 2 {
        return FileOrder::Sequential;
    }
    let order = settings.value("file_service_type", |text| {
        let (word, every) = text.split_once(':').unwrap_or((text, "1"));
        let every = value::count(every)?.max(1);
        match word.trim() {
            "roundrobin" => Ok(FileOrder::RoundRobin(every)),
            "random" => Ok(FileOrder::Random(every)),
            "sequential" => Ok(FileOrder::Sequential),
            _ => Err(Why::new("files are not skewed; use roundrobin, random or sequential")),
        }
    });
    order.unwrap_or(FileOrder::RoundRobin(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_without_a_percent_divide_the_rest() {
        let split = |text| shares(text, Base::FIO);
        let share = |bytes, weight| BlockShare { bytes, weight };
        let expected = vec![share(4096, 20), share(65536, 70), share(8192, 40), share(16384, 70)];
        assert_eq!(split("4k/10:64k/:8k/20:16k"), Ok(BlockSizes::Shares(expected)));
        let even = vec![share(4096, 100), share(65536, 100)];
        assert_eq!(split("4k:64k"), Ok(BlockSizes::Shares(even)));
        assert_eq!(split("4k/100"), Ok(BlockSizes::One(4096)));
        for text in ["", "4k/60:8k/60", "4k/0:8k/0", "x/10", "4k/x"] {
            assert!(split(text).is_err(), "{text}");
        }
    }
}
