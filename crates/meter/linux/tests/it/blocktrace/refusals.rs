//! What is missing is named, with its fix.

use std::fs;

use iostrata_linux::blocktrace::{BlockTrace, TraceError, TraceScope, TracedDevice, events};

use crate::blocktrace::instance::Instance;

fn scope() -> TraceScope {
    let device = TracedDevice {
        name: "loop0".to_owned(),
        number: "7:0".parse().unwrap(),
        partitions: Vec::new(),
    };
    TraceScope { devices: vec![device], ..TraceScope::default() }
}

#[test]
fn a_missing_instance_or_device_is_named() {
    let empty = tempfile::tempdir().unwrap();
    let Err(error) = BlockTrace::open(empty.path(), scope()) else { panic!("it opened") };
    assert!(matches!(error, TraceError::NoInstance { .. }), "{error}");
    let Err(error) = BlockTrace::open(empty.path(), TraceScope::default()) else { panic!() };
    assert!(matches!(error, TraceError::NoDevice), "{error}");
    let error = events(empty.path()).unwrap_err();
    assert!(error.to_string().contains("mount -t tracefs"), "{error}");
}

#[test]
fn steps_out_of_order_and_wrong_settings_are_refused() {
    let instance = match Instance::make(64) {
        Ok(instance) => instance,
        Err(reason) => {
            eprintln!("skipped: steps_out_of_order_and_wrong_settings_are_refused: {reason}");
            return;
        }
    };
    let mut switch = instance.switch();
    let mut trace = BlockTrace::open(instance.dir(), scope()).unwrap();
    assert!(matches!(trace.stop(&mut switch), Err(TraceError::OutOfOrder { .. })));
    assert!(matches!(trace.take(None), Err(TraceError::OutOfOrder { .. })));
    let mut broken =
        |_: &iostrata_linux::blocktrace::Setting| Err(std::io::ErrorKind::Other.into());
    assert!(matches!(trace.start(&mut broken), Err(TraceError::NotSet { .. })));
    trace.start(&mut switch).unwrap();
    assert!(matches!(trace.start(&mut switch), Err(TraceError::OutOfOrder { .. })));
    trace.stop(&mut switch).unwrap();
    assert_eq!(trace.take(None).unwrap().requests, 0);

    let issue = instance.dir().join("events/block/block_rq_issue/enable");
    fs::write(&issue, "0").unwrap();
    let Err(TraceError::EventsOff { events, .. }) = BlockTrace::open(instance.dir(), scope())
    else {
        panic!("it opened")
    };
    assert_eq!(events, ["block:block_rq_issue"]);
    fs::write(&issue, "1").unwrap();
    fs::write(instance.dir().join("trace_clock"), "local").unwrap();
    let Err(error) = BlockTrace::open(instance.dir(), scope()) else { panic!("it opened") };
    assert!(error.to_string().contains("mono"), "{error}");
}
