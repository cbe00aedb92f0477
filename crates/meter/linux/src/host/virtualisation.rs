//! Whether this is a virtual machine or a container, and which.
//!
//! Several weak signs are asked in the order of their strength. A marker left behind by an image
//! (`/.dockerenv`) counts: it says how the system was made, which is what a reader wants to know.

use crate::host::Root;

/// The hypervisor, with the platform that the firmware names where that says more.
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
