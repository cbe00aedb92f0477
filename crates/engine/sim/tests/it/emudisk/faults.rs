//! What arrives, and what goes wrong on request.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use iostrata_sim::emudisk::{Client, ClientError, Fault, Power, Store};

use crate::emudisk::served::{MIB, Served, can_serve, done, run, wait_for};

const DISK: &str = "nvme-no-plp";

fn errno(result: io::Result<()>) -> Option<i32> {
    result.unwrap_err().raw_os_error()
}

#[test]
fn what_arrives_is_counted_and_kept() {
    if !can_serve("what_arrives_is_counted_and_kept", &[]) {
        return;
    }
    let disk = Served::start(DISK, 16 * MIB);
    let file = disk.file();
    assert_eq!(file.metadata().unwrap().len(), 16 * MIB);
    let before = disk.stats();
    for at in 0..4 {
        file.write_all_at(&[at as u8 + 1; 8192], at * 8192).unwrap();
    }
    file.sync_all().unwrap();
    let mut read = [0; 4096];
    file.read_exact_at(&mut read, 3 * 8192).unwrap();
    assert_eq!(read, [4; 4096]);
    assert_eq!(file.read_at(&mut read, 16 * MIB).unwrap(), 0, "there is nothing after its end");
    assert_eq!(errno(file.write_all_at(&[1; 512], 16 * MIB)), Some(libc::ENOSPC));
    assert_eq!(errno(file.set_len(MIB)), Some(libc::EPERM));
    let after = disk.stats();
    assert_eq!((after.writes - before.writes, after.write_bytes - before.write_bytes), (4, 32_768));
    assert_eq!((after.reads - before.reads, after.flushes - before.flushes), (1, 1));
    assert!(after.in_order > 0.0 && after.depth_max >= 1 && after.depth_mean >= 1.0);
    assert_eq!((after.store_bytes, after.unflushed_bytes), (32_768, 0));
    assert_eq!((after.model.as_str(), after.size_bytes), (DISK, 16 * MIB));
    assert_eq!((after.power, after.cuts), (Power::On, 0));
    // A discard gives room back and leaves zeros.
    done("blkdiscard", &["--force", disk.device.to_str().unwrap()]);
    assert_eq!(disk.stats().store_bytes, 0);
    file.read_exact_at(&mut read, 0).unwrap();
    assert_eq!(read, [0; 4096]);
}

#[test]
fn requests_fail_where_and_as_often_as_asked() {
    if !can_serve("requests_fail_where_and_as_often_as_asked", &[]) {
        return;
    }
    let disk = Served::start(DISK, 16 * MIB);
    let (file, mut page) = (disk.file(), [0; 4096]);
    disk.control("eio 1M-2M");
    assert_eq!(errno(file.read_exact_at(&mut page, MIB)), Some(libc::EIO));
    assert_eq!(errno(file.write_all_at(&[1; 4096], 2 * MIB - 512)), Some(libc::EIO));
    file.write_all_at(&[1; 4096], 2 * MIB).unwrap();
    disk.control("eio none");
    file.read_exact_at(&mut page, MIB).unwrap();
    assert_eq!(page, [0; 4096]);
    disk.control("eio-rate 500000");
    let failed = (0..200).filter(|_| file.read_exact_at(&mut [0; 512], 0).is_err()).count();
    assert!((50..150).contains(&failed), "{failed} of 200 failed at half");
    disk.control("eio-rate 0");
    assert_eq!(disk.stats().errors_injected, failed as u64 + 2);
    disk.control("slow 80");
    let before = Instant::now();
    file.read_exact_at(&mut page, 0).unwrap();
    assert!(before.elapsed().as_millis() >= 80, "no earlier than asked");
    disk.control("slow 0");
}

#[test]
fn contents_grow_to_their_limit_and_no_further() {
    if !can_serve("contents_grow_to_their_limit_and_no_further", &[]) {
        return;
    }
    let store = Store::File { dir: env!("CARGO_TARGET_TMPDIR").into() };
    let disk = Served::with(DISK, 16 * MIB, store);
    let file = disk.file();
    disk.control("store-limit 64K");
    file.write_all_at(&[1; 65_536], 0).unwrap();
    assert_eq!(errno(file.write_all_at(&[2; 4096], 65_536)), Some(libc::ENOSPC));
    file.write_all_at(&[3; 4096], 4096).unwrap();
    assert_eq!(disk.sector(8), [3; 512]);
    assert_eq!(disk.sector(128), [0; 512]);
    let stats = disk.stats();
    assert_eq!((stats.errors_full, stats.store_bytes), (1, 65_536));
}

#[test]
fn nonsense_is_refused() {
    if !can_serve("nonsense_is_refused", &[]) {
        return;
    }
    let mut disk = Served::start(DISK, 16 * MIB);
    let control = disk.at().join("control");
    let refused = fs::write(&control, "explode now");
    assert_eq!(errno(refused), Some(libc::EINVAL));
    fs::write(&control, "slow 0\n").unwrap();
    assert!(fs::write(disk.at().join("more"), "x").is_err());
    assert!(fs::remove_file(&control).is_err());
    let error = Client::at(&disk.mount_point()).stats().unwrap_err();
    assert!(matches!(error, ClientError::NotServed { .. }), "{error}");
    // It ends by itself when it is unmounted.
    done("losetup", &["--detach", disk.device.to_str().unwrap()]);
    wait_for("it is unmounted", || run("umount", &[disk.at().to_str().unwrap()]).status.success());
    wait_for("the server ends", || disk.has_ended());
    let error = disk.client.control(&Fault::PowerOn).unwrap_err();
    assert!(error.to_string().contains("no disk is served at"), "{error}");
}

#[test]
fn what_cannot_be_served_is_said() {
    use iostrata_sim::emudisk::{ServeError, ServeOptions, serve};
    let options = |size_bytes, store| ServeOptions {
        disk: DISK.parse().unwrap(),
        size_bytes,
        store,
        store_limit_bytes: None,
        seed: 0,
        measured: None,
    };
    let said = |at: &str, options| {
        let stop = std::sync::atomic::AtomicBool::new(true);
        serve(at.as_ref(), options, &stop).unwrap_err()
    };
    let error = said("/", options(0, Store::Memory));
    assert!(matches!(error, ServeError::Small { bytes: 0 }), "{error}");
    let error = said("/", options(MIB + 512, Store::Memory));
    assert!(matches!(error, ServeError::Uneven { .. }), "{error}");
    let error = said("/no/such/place", options(MIB, Store::Memory));
    assert!(error.to_string().contains("`/no/such/place` is no directory"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let gone = Store::File { dir: "/no/such/store".into() };
    let error = said(at, options(16 * MIB, gone));
    assert!(error.to_string().contains("`/no/such/store` cannot hold"), "{error}");
    if File::open("/dev/shm").is_ok() {
        let tmpfs = Store::File { dir: "/dev/shm".into() };
        let error = said(at, options(16 * MIB, tmpfs));
        assert!(error.to_string().contains("tmpfs"), "{error}");
    }
}
