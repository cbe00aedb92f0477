//! What `tune` prints where it lacks access: users who may not log in, set, or see the checkpoint
//! age.

use iostrata_server::private::ServerProgram;

use crate::harness::{Bench, stderr, stdout};
use crate::server::{Private, programs};
use crate::under_load::settings;

#[test]
fn who_lacks_a_right_is_told_the_grant() {
    for program in programs() {
        let bench = Bench::new();
        let found = ServerProgram::find(&program).unwrap();
        let is_old = found.version.is_mariadb || found.version.number.0 < 8;
        let right = if is_old { "SUPER" } else { "SYSTEM_VARIABLES_ADMIN" };
        let allowed = format!("GRANT {right} ON *.* TO blind@localhost");
        let users = ["CREATE USER poor@localhost", "CREATE USER blind@localhost", allowed.as_str()];
        let is_mariadb = found.version.is_mariadb;
        let tells_age = is_mariadb || found.version.number >= (8, 0, 30);
        let options = ["--innodb-buffer-pool-size=64M"];
        let private = Private::of(found, tempfile::tempdir().unwrap(), &options, &users);
        let before = settings(&private);
        let tune = |user: &str| {
            let output = bench.line(&format!("tune {} --time 2", private.target(user, "")));
            (output.status.code(), stderr(&output))
        };
        let (code, said) = tune("poor");
        assert_eq!(code, Some(2), "{program}: {said}");
        assert!(said.contains(&format!("GRANT {right} ON *.* TO ")), "{program}: {said}");
        let (code, said) = tune("blind");
        if is_mariadb {
            assert_eq!(code, Some(0), "{program}: {said}");
        } else {
            // A replica could not be distinguished from another server.
            assert_eq!(code, Some(2), "{program}: {said}");
            assert!(said.contains("may not see whether the server is a replica"), "{said}");
            assert!(said.contains("GRANT PROCESS ON *.* TO"), "{program}: {said}");
        }
        let dry = bench.line(&format!("tune {} --dry-run --time 2", private.target("blind", "")));
        let (code, said) = (dry.status.code(), stdout(&dry) + &stderr(&dry));
        assert_eq!(said.contains("In the way of tuning it"), !is_mariadb, "{program}: {said}");
        if !tells_age {
            assert_eq!(code, Some(2), "{program}: {said}");
            assert!(said.contains("the server does not report"), "{program}: {said}");
        }
        let (code, said) = tune("root:wrong");
        assert_eq!(code, Some(2), "{program}: {said}");
        assert!(said.contains("1045") && said.contains("check user and password"), "{said}");
        assert!(!said.contains("wrong@"), "{said}");
        assert_eq!(settings(&private), before, "{program}");
        private.end();
    }
}

#[test]
fn a_dry_run_needs_no_right_and_says_what_is_in_the_way() {
    for program in programs() {
        let bench = Bench::new();
        let found = ServerProgram::find(&program).unwrap();
        let users = ["CREATE USER poor@localhost", "GRANT PROCESS ON *.* TO poor@localhost"];
        let options = ["--innodb-buffer-pool-size=64M", "--event-scheduler=ON"];
        let private = Private::of(found, tempfile::tempdir().unwrap(), &options, &users);
        private.hold_in("", &["SET GLOBAL read_only = 1"], || {});
        let before = settings(&private);
        let target = private.target("poor", "");
        let mut said = String::new();
        private.hold_in("", &["DO GET_LOCK('iostrata_tune', 1)"], || {
            let output = bench.line(&format!("tune {target} --dry-run --time 2 --out RUN"));
            said = stdout(&output) + &stderr(&output);
            assert_eq!(output.status.code(), Some(0), "{program}: {said}");
        });
        for why in ["read_only is ON", "GRANT S", "another iostrata tune is at work"] {
            let is_told = |line: &str| line.starts_with("In the way") && line.contains(why);
            assert!(said.lines().any(is_told), "{program}, {why}: {said}");
        }
        assert!(said.contains("nothing was set (--dry-run)"), "{program}: {said}");
        let has_lease = said.contains("puts itself back") || said.contains("No lease");
        assert!(!has_lease, "{program}: it is never tuned: {said}");
        assert_eq!(settings(&private), before, "{program}");
        private.end();
    }
}

#[test]
fn a_replica_that_may_be_written_to_is_refused() {
    for program in programs() {
        let bench = Bench::new();
        let found = ServerProgram::find(&program).unwrap();
        let is_mariadb = found.version.is_mariadb;
        let options = ["--innodb-buffer-pool-size=64M", "--server-id=7"];
        let private = Private::of(found, tempfile::tempdir().unwrap(), &options, &[]);
        // Its primary does not answer, which it goes on trying.
        let follow = match is_mariadb {
            true => ["CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1", "START SLAVE"],
            false => {
                let to = "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 1";
                [to, "START REPLICA"]
            }
        };
        private.hold_in("", &follow, || {});
        let target = private.target("root", "");
        for line in [
            format!("tune {target} --time 2 --out RUN"),
            format!("watch {target} --verify --record TRIED --time 1"),
        ] {
            let output = bench.line(&line);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{program}, {line}: {said}");
            assert!(said.contains("it replicates from"), "{program}, {line}: {said}");
        }
        private.end();
    }
}
