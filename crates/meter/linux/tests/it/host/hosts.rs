//! `describe_host` on machines that were built for it.

use iostrata_linux::host::describe_host;

use crate::host::tree::Tree;

#[test]
fn a_machine_described() {
    const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0";
    let tree = Tree::new()
        .file("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Fast CPU\nflags\t\t: fpu hypervisor\n")
        .file("/proc/meminfo", "MemTotal:  2048 kB\nMemAvailable: 1024 kB\n")
        .file("/proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nCpus_allowed_list:\t0-1,3\n")
        .file("/proc/self/limits", "Max locked memory         unlimited            unlimited            bytes\nMax open files            1024                 4096                 files\n")
        .file("/proc/cmdline", "quiet mitigations=auto,nosmt ro\n")
        .file("/sys/devices/system/cpu/online", "0-3\n")
        .file("/sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n")
        .file("/sys/devices/system/cpu/vulnerabilities/retbleed", "Mitigation: Enhanced IBRS\n")
        .file(&format!("{CLOCK}/current_clocksource"), "tsc\n")
        .file(&format!("{CLOCK}/available_clocksource"), "tsc kvm-clock acpi_pm \n")
        .file("/proc/sys/vm/dirty_bytes", "1048576\n")
        .file("/proc/sys/vm/dirty_background_bytes", "0\n")
        .file("/sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
    let host = describe_host(&tree.root());
    assert_eq!((host.dirty_bytes, host.dirty_background_bytes), (Some(1 << 20), Some(0)));
    assert_eq!(host.kernel.as_deref(), Some("6.18.1-test"));
    assert_eq!(host.cpu_model.as_deref(), Some("Fast CPU"));
    assert_eq!((host.cpus, host.cpus_allowed), (Some(4), Some(3)));
    assert_eq!(host.memory_bytes, Some(2 << 20));
    assert_eq!(host.virtualisation.as_deref(), Some("kvm (amazon ec2)"));
    assert_eq!(host.container, None);
    assert_eq!(host.clock_source.as_deref(), Some("tsc"));
    assert_eq!(host.clock_sources_available, ["tsc", "kvm-clock", "acpi_pm"]);
    assert_eq!(host.mitigations_option.as_deref(), Some("auto,nosmt"));
    assert_eq!(host.mitigations_active, ["retbleed"]);
    assert_eq!((host.memlock_limit_bytes, host.memlock_unlimited), (None, Some(true)));
    assert_eq!(host.open_files_limit, Some(1024));
    assert!(!host.user_is_root);
}

#[test]
fn hypervisors_by_their_signs() {
    let named = |tree: Tree| describe_host(&tree.root()).virtualisation;
    let flags = |tree: Tree| tree.file("/proc/cpuinfo", "flags\t\t: fpu hypervisor vmx\n");
    assert_eq!(named(Tree::new()), None);
    assert_eq!(named(flags(Tree::new())).as_deref(), Some("unknown"));
    let xen = Tree::new().file("/sys/hypervisor/type", "xen\n");
    assert_eq!(named(xen).as_deref(), Some("xen"));
    let vmware = flags(Tree::new()).file("/sys/class/dmi/id/sys_vendor", "VMware, Inc.\n");
    assert_eq!(named(vmware).as_deref(), Some("vmware"));
    let whole = Tree::new()
        .file("/sys/class/dmi/id/sys_vendor", "Amazon EC2\n")
        .file("/sys/class/dmi/id/product_name", "m5.metal\n");
    assert_eq!(named(whole), None);
}
