//! What to trace: devices and whose calls.

use iostrata_run::host::{BlockLayer, DeviceNumber, LayerKind, PathFacts};

/// What to trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceScope {
    /// The devices whose requests count: the topmost ones with a request queue of their own.
    pub devices: Vec<TracedDevice>,
    /// Processes whose calls count. Empty: calls of any process that the devices serve; then
    /// waiting for a limit is not told from the file system.
    pub processes: Vec<u32>,
    /// Whether a control group limits the I/O of those processes on those devices. Only then is
    /// waiting for a limit told from the file system.
    pub is_limited: bool,
}

/// One device with a request queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedDevice {
    /// Kernel name.
    pub name: String,
    /// Its number.
    pub number: DeviceNumber,
    /// Numbers of its partitions that are in use: bios carry the partition's number, requests the
    /// disk's, and both count sectors from the start of the disk.
    pub partitions: Vec<DeviceNumber>,
}

impl TraceScope {
    /// The devices that serve a path, for the calls of `processes`.
    ///
    /// Devices without requests of their own (partitions, logical volumes, software RAID, caches)
    /// are passed through to the ones below, down to a disk or a loop device.
    pub fn of(facts: &PathFacts, processes: Vec<u32>) -> Self {
        let devices = devices(&facts.block_stack);
        Self { devices, processes, is_limited: !facts.limits.is_empty() }
    }

    /// Names of the devices, as the result carries them.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.devices.iter().map(|device| device.name.as_str()).collect();
        names.join("+")
    }

    /// The index of the device that a number of the kernel's trace stands for.
    pub(crate) fn index(&self, traced_number: u64) -> Option<u8> {
        let is_it = |number: &DeviceNumber| u64::from(kernel_number(*number)) == traced_number;
        let at = self
            .devices
            .iter()
            .position(|device| is_it(&device.number) || device.partitions.iter().any(is_it))?;
        u8::try_from(at).ok()
    }

    /// A filter expression that these devices pass.
    pub(crate) fn device_filter(&self) -> String {
        let numbers = self
            .devices
            .iter()
            .flat_map(|device| std::iter::once(device.number).chain(device.partitions.clone()));
        let tests: Vec<String> =
            numbers.map(|number| format!("dev == {}", kernel_number(number))).collect();
        tests.join(" || ")
    }
}

fn devices(stack: &[BlockLayer]) -> Vec<TracedDevice> {
    let mut devices: Vec<TracedDevice> = Vec::new();
    let mut open: Vec<(&BlockLayer, Option<DeviceNumber>)> =
        stack.iter().filter(|layer| layer.depth == 0).map(|layer| (layer, None)).collect();
    // A stack has no circles; the bound only keeps odd facts from running on.
    for _ in 0..stack.len() * 4 {
        let Some((layer, partition)) = open.pop() else { break };
        let has_requests = matches!(layer.kind, LayerKind::Disk | LayerKind::Loop { .. });
        if let (true, Some(number)) = (has_requests, layer.device_number) {
            add(&mut devices, &layer.name, number, partition);
        } else {
            let is_partition = matches!(layer.kind, LayerKind::Partition { .. });
            let partition = layer.device_number.filter(|_| is_partition);
            let below = stack.iter().filter(|lower| layer.below.contains(&lower.name));
            open.extend(below.map(|lower| (lower, partition)));
        }
    }
    devices.sort_by(|a, b| a.name.cmp(&b.name));
    devices
}

fn add(
    devices: &mut Vec<TracedDevice>,
    name: &str,
    number: DeviceNumber,
    partition: Option<DeviceNumber>,
) {
    let at = devices.iter().position(|device| device.number == number).unwrap_or_else(|| {
        devices.push(TracedDevice { name: name.to_owned(), number, partitions: Vec::new() });
        devices.len() - 1
    });
    if let (Some(device), Some(partition)) = (devices.get_mut(at), partition)
        && !device.partitions.contains(&partition)
    {
        device.partitions.push(partition);
    }
}

/// The kernel's own form of a device number, which differs from the one that programs see.
fn kernel_number(number: DeviceNumber) -> u32 {
    (number.major << 20) | (number.minor & 0xf_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> DeviceNumber {
        text.parse().unwrap()
    }

    fn layer(name: &str, at: &str, kind: LayerKind, depth: u32, below: &[&str]) -> BlockLayer {
        BlockLayer {
            name: name.to_owned(),
            device_number: Some(number(at)),
            kind,
            depth,
            below: below.iter().map(|&name| name.to_owned()).collect(),
            size_bytes: None,
            alignment_offset_bytes: None,
        }
    }

    #[test]
    fn devices_without_requests_are_passed_through() {
        let partition = || LayerKind::Partition { number: None, start_bytes: None };
        let stack = [
            layer("dm-0", "253:0", LayerKind::Lvm { name: None }, 0, &["sda2", "sdb1"]),
            layer("sda2", "8:2", partition(), 1, &["sda"]),
            layer("sdb1", "8:17", partition(), 1, &["sdb"]),
            layer("sda", "8:0", LayerKind::Disk, 2, &[]),
            layer("sdb", "8:16", LayerKind::Disk, 2, &[]),
        ];
        let found = devices(&stack);
        let numbers: Vec<_> = found.iter().map(|d| (d.number, d.partitions.clone())).collect();
        let wanted = [("8:0", "8:2"), ("8:16", "8:17")];
        assert_eq!(numbers, wanted.map(|(disk, part)| (number(disk), vec![number(part)])));
        let looped = LayerKind::Loop {
            backing_file: None,
            direct_io: None,
            offset_bytes: None,
            backing_file_system: None,
            backing_block_bytes: None,
        };
        let stack = [
            layer("loop1", "7:1", looped, 0, &["sda"]),
            layer("sda", "8:0", LayerKind::Disk, 1, &[]),
        ];
        let found = devices(&stack);
        assert_eq!((found.len(), found[0].name.as_str()), (1, "loop1"));
    }

    #[test]
    fn numbers_of_disk_and_partition_mean_the_disk() {
        let mut devices = Vec::new();
        add(&mut devices, "sda", number("8:0"), Some(number("8:1")));
        add(&mut devices, "sda", number("8:0"), Some(number("8:1")));
        add(&mut devices, "loop3", number("7:3"), None);
        let scope = TraceScope { devices, ..TraceScope::default() };
        assert_eq!(scope.names(), "sda+loop3");
        assert_eq!(scope.index((8 << 20) | 1), Some(0));
        assert_eq!(scope.index(8 << 20), Some(0));
        assert_eq!(scope.index((7 << 20) | 3), Some(1));
        assert_eq!(scope.index((7 << 20) | 4), None);
        assert_eq!(scope.device_filter(), "dev == 8388608 || dev == 8388609 || dev == 7340035");
    }
}
