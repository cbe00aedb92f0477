//! The machine's facts, each from one small file, and whether it is a virtual machine or a
//! container.
//!
//! For the latter several weak signs are checked in the order of their strength. A marker left
//! behind by an image (`/.dockerenv`) counts: it shows how the system was made, which is what a
//! reader wants to know.

use iostrata_run::host::HostFacts;

use crate::host::Root;
use crate::host::cgroup::cgroup_facts;

/// Describes the machine. What it does not report stays absent; this cannot fail.
pub fn describe_host(root: &Root) -> HostFacts {
    let cpuinfo = root.text("/proc/cpuinfo").unwrap_or_default();
    let meminfo = root.text("/proc/meminfo").unwrap_or_default();
    let status = root.text("/proc/self/status").unwrap_or_default();
    let limits = root.text("/proc/self/limits").unwrap_or_default();
    let clock =
        |name: &str| root.word(format!("/sys/devices/system/clocksource/clocksource0/{name}"));
    let memlock = soft_limit(&limits, "Max locked memory");
    HostFacts {
        kernel: root.word("/proc/sys/kernel/osrelease"),
        architecture: Some(
            root.word("/proc/sys/kernel/arch").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        ),
        cpu_model: ["model name", "Model", "cpu model", "Hardware"]
            .iter()
            .find_map(|name| value_of(&cpuinfo, name)),
        cpus: cpus_online(root, &cpuinfo),
        cpus_allowed: value_of(&status, "Cpus_allowed_list").and_then(|list| count_of(&list)),
        memory_bytes: kib_of(&meminfo, "MemTotal"),
        memory_available_bytes: kib_of(&meminfo, "MemAvailable"),
        virtualisation: virtualisation(root, &cpuinfo),
        container: container(root),
        clock_source: clock("current_clocksource"),
        clock_sources_available: clock("available_clocksource")
            .map(|list| list.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default(),
        cpu_governor: root.word("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        mitigations_option: mitigations_option(root),
        mitigations_active: mitigations_active(root),
        cgroup: cgroup_facts(root),
        user_is_root: effective_user(&status) == Some(0),
        memlock_limit_bytes: memlock.as_deref().and_then(|limit| limit.parse().ok()),
        memlock_unlimited: memlock.map(|limit| limit == "unlimited"),
        open_files_limit: soft_limit(&limits, "Max open files")
            .and_then(|limit| limit.parse().ok()),
        aio_requests_max: root.number("/proc/sys/fs/aio-max-nr"),
        aio_requests_used: root.number("/proc/sys/fs/aio-nr"),
        io_uring_disabled: root.number("/proc/sys/kernel/io_uring_disabled"),
        idle_exit_us_max: idle_exit_us_max(root),
        dirty_ratio_pct: root.number("/proc/sys/vm/dirty_ratio"),
        dirty_background_ratio_pct: root.number("/proc/sys/vm/dirty_background_ratio"),
        dirty_bytes: root.number("/proc/sys/vm/dirty_bytes"),
        dirty_background_bytes: root.number("/proc/sys/vm/dirty_background_bytes"),
    }
}

/// The first value of `name : value` lines.
fn value_of(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        let value = value.trim();
        (found.trim() == name && !value.is_empty()).then(|| value.to_owned())
    })
}

/// A line of meminfo, which counts in KiB, in bytes.
fn kib_of(meminfo: &str, name: &str) -> Option<u64> {
    let value = value_of(meminfo, name)?;
    value.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

fn cpus_online(root: &Root, cpuinfo: &str) -> Option<u32> {
    let online = root.word("/sys/devices/system/cpu/online").and_then(|list| count_of(&list));
    online.or_else(|| {
        let listed = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
        u32::try_from(listed).ok().filter(|cpus| *cpus > 0)
    })
}

/// How many numbers a list such as `0-3,8` names.
fn count_of(list: &str) -> Option<u32> {
    list.trim().split(',').try_fold(0u32, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

/// The slowest of the idle states that are not switched off.
fn idle_exit_us_max(root: &Root) -> Option<u64> {
    const STATES: &str = "/sys/devices/system/cpu/cpu0/cpuidle";
    let states = root.names(STATES).into_iter().map(|name| format!("{STATES}/{name}"));
    let used = states.filter(|state| root.flag(format!("{state}/disable")) != Some(true));
    used.filter_map(|state| root.number(format!("{state}/latency"))).max()
}

fn mitigations_option(root: &Root) -> Option<String> {
    let line = root.text("/proc/cmdline")?;
    line.split_whitespace().find_map(|word| word.strip_prefix("mitigations=")).map(str::to_owned)
}

fn mitigations_active(root: &Root) -> Vec<String> {
    const WEAKNESSES: &str = "/sys/devices/system/cpu/vulnerabilities";
    let mut names = root.names(WEAKNESSES);
    names.retain(|name| {
        root.word(format!("{WEAKNESSES}/{name}"))
            .is_some_and(|state| state.starts_with("Mitigation"))
    });
    names
}

/// The second number of `Uid:` is the effective one.
fn effective_user(status: &str) -> Option<u32> {
    value_of(status, "Uid")?.split_whitespace().nth(1)?.parse().ok()
}

/// The soft limit of a line of `/proc/self/limits`, whose names contain blanks.
fn soft_limit(limits: &str, name: &str) -> Option<String> {
    let rest = limits.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next().map(str::to_owned)
}

/// The hypervisor, with the platform that the firmware names where that is more specific.
pub(crate) fn virtualisation(root: &Root, cpuinfo: &str) -> Option<String> {
    let platform = platform(root);
    let hypervisor = hypervisor(root, cpuinfo, platform.as_deref())?;
    match platform {
        Some(platform) if platform != hypervisor => Some(format!("{hypervisor} ({platform})")),
        _ => Some(hypervisor),
    }
}

fn hypervisor(root: &Root, cpuinfo: &str, platform: Option<&str>) -> Option<String> {
    if let Some(kind) = root.word("/sys/hypervisor/type") {
        return Some(kind);
    }
    let clocks = root
        .word("/sys/devices/system/clocksource/clocksource0/available_clocksource")
        .unwrap_or_default();
    let has_clock = |name: &str| clocks.split_whitespace().any(|clock| clock.starts_with(name));
    let tree = root.word("/proc/device-tree/hypervisor/compatible").unwrap_or_default();
    let by_sign = [
        (has_clock("kvm-clock") || tree.contains("kvm"), "kvm"),
        (has_clock("hyperv"), "hyperv"),
        (has_clock("xen") || tree.contains("xen"), "xen"),
    ];
    if let Some((_, name)) = by_sign.iter().find(|(sign, _)| *sign) {
        return Some((*name).to_owned());
    }
    let by_platform = match platform {
        Some("vmware") => Some("vmware"),
        Some("virtualbox") => Some("virtualbox"),
        Some("parallels") => Some("parallels"),
        Some("qemu") => Some("qemu"),
        _ => None,
    };
    by_platform.or_else(|| has_hypervisor_flag(cpuinfo).then_some("unknown")).map(str::to_owned)
}

fn has_hypervisor_flag(cpuinfo: &str) -> bool {
    cpuinfo
        .lines()
        .find(|line| line.starts_with("flags"))
        .is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// The maker of the (virtual) machine as the firmware states it; only makers of virtual machines.
fn platform(root: &Root) -> Option<String> {
    const MAKERS: [(&str, &str); 13] = [
        ("Amazon EC2", "amazon ec2"),
        ("Google", "google cloud"),
        ("Alibaba Cloud", "alibaba cloud"),
        ("DigitalOcean", "digitalocean"),
        ("Hetzner", "hetzner"),
        ("OpenStack", "openstack"),
        ("VMware", "vmware"),
        ("innotek", "virtualbox"),
        ("VirtualBox", "virtualbox"),
        ("Parallels", "parallels"),
        ("Virtual Machine", "microsoft"),
        ("QEMU", "qemu"),
        ("Bochs", "qemu"),
    ];
    let stated: Vec<String> = ["sys_vendor", "product_name", "board_vendor", "bios_vendor"]
        .iter()
        .filter_map(|name| root.word(format!("/sys/class/dmi/id/{name}")))
        .collect();
    // Machines rented whole carry their maker's name too.
    if stated.iter().any(|text| text.ends_with(".metal")) {
        return None;
    }
    MAKERS
        .iter()
        .find(|(sign, _)| stated.iter().any(|text| text.contains(sign)))
        .map(|(_, name)| (*name).to_owned())
}

/// The container runtime whose marker is there.
pub(crate) fn container(root: &Root) -> Option<String> {
    if root.exists("/run/.containerenv") {
        return Some("podman".to_owned());
    }
    if root.exists("/.dockerenv") {
        return Some("docker".to_owned());
    }
    let named = root.word("/run/systemd/container").or_else(|| {
        let environment = root.text("/proc/1/environ")?;
        environment.split('\0').find_map(|line| line.strip_prefix("container=")).map(str::to_owned)
    });
    named.filter(|name| !name.is_empty()).or_else(|| {
        let groups = root.text("/proc/self/cgroup")?;
        let signs = [
            ("kubepods", "kubernetes"),
            ("/docker", "docker"),
            ("libpod", "podman"),
            ("/lxc", "lxc"),
        ];
        signs.iter().find(|(sign, _)| groups.contains(sign)).map(|(_, name)| (*name).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_of_processors() {
        assert_eq!(count_of("0-3,8\n"), Some(5));
        assert_eq!(count_of("0"), Some(1));
        for odd in ["", "3-1", "a", "0-4294967295"] {
            assert_eq!(count_of(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn lines_of_proc() {
        assert_eq!(kib_of("MemTotal:       24684096 kB\n", "MemTotal"), Some(25_276_514_304));
        assert_eq!(effective_user("Name:\tx\nUid:\t1000\t0\t0\t0\n"), Some(0));
        let limits = "Max locked memory         8388608              unlimited            bytes\n";
        assert_eq!(soft_limit(limits, "Max locked memory").as_deref(), Some("8388608"));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,200}", list in "[0-9,-]{0,30}") {
            count_of(&list);
            value_of(&text, "Uid");
            kib_of(&format!("MemTotal:{list} kB"), "MemTotal");
            soft_limit(&text, "M");
        }
    }
}
