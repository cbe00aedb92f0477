//! The threads of a process, by which its events are known.

use std::collections::HashSet;
use std::path::Path;

/// Adds the threads that these processes have now. A process that is gone adds none.
pub(crate) fn add_threads(threads: &mut HashSet<u32>, processes: &[u32]) {
    for process in processes {
        let tasks = Path::new("/proc").join(process.to_string()).join("task");
        let Ok(entries) = std::fs::read_dir(tasks) else { continue };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        threads.extend(names.filter_map(|name| name.parse::<u32>().ok()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_thread_is_found_and_a_wrong_process_adds_none() {
        let mut threads = HashSet::new();
        add_threads(&mut threads, &[std::process::id(), u32::MAX]);
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert!(threads.contains(&own));
    }
}
