//! `tune` and `restore` of a server that requires TLS, by certificates of an
//! authority of one's own.

use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::harness::{Bench, stderr, stdout};
use crate::proxy::Proxy;
use crate::under_load::{end, load, pressed, settings, start, wait_until_tuned};

/// Runs openssl in a directory; false where it is not there.
fn openssl(dir: &Path, line: &str) -> bool {
    let mut command = Command::new("openssl");
    command.args(line.split(' ')).current_dir(dir).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// An authority, and by it a certificate of this host.
fn certify(dir: &Path) -> bool {
    let key = "-newkey rsa:2048 -nodes -days 2";
    [
        format!("req -x509 {key} -keyout ca.key -out ca.pem -subj /CN=authority"),
        format!("req -x509 {key} -keyout other.key -out other.pem -subj /CN=other"),
        "req -newkey rsa:2048 -nodes -keyout key.pem -out csr.pem -subj /CN=server -addext \
         subjectAltName=IP:127.0.0.1"
            .to_owned(),
        "x509 -req -in csr.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 \
         -copy_extensions copy"
            .to_owned(),
    ]
    .iter()
    .all(|line| openssl(dir, line))
}

#[test]
fn a_server_that_asks_for_tls_is_tuned_and_put_back_by_its_certificate() {
    let bench = Bench::new();
    let dir = bench.path("tls");
    std::fs::create_dir(&dir).unwrap();
    if !certify(&dir) {
        eprintln!("skipped: needs openssl, from 3.0 on");
        return;
    }
    let file = |name: &str| dir.join(name).display().to_string();
    let tls = [("ca", "ca.pem"), ("cert", "cert.pem"), ("key", "key.pem")];
    let tls = tls.map(|(option, name)| format!("--ssl-{option}={}", file(name)));
    let Some(private) = pressed(&tls.each_ref().map(String::as_str)) else { return };
    let users = [
        "CREATE USER secure@localhost REQUIRE SSL",
        "GRANT ALL PRIVILEGES ON *.* TO secure@localhost",
    ];
    private.hold_in("", &users, || {});
    let proxy = Proxy::before(&[&private]);
    let plain = proxy.target.replacen("root@", "secure@", 1);
    let by = |ca: &str| format!("{plain}?ssl=required&ssl_verify=on&ssl_ca={}", file(ca));
    let load = load(&bench, &private);
    let before = settings(&private);
    for (target, why) in
        [(format!("{plain}?ssl=disabled"), "1045"), (by("other.pem"), "certificate")]
    {
        let refused = bench.line(&format!("tune {target} --time 1"));
        assert!(!refused.status.success(), "{target}: {}", stdout(&refused));
        assert!(stderr(&refused).contains(why), "{target}: {}", stderr(&refused));
    }
    let tune = start(&bench, &format!("tune {} --quiet --out RUN", by("ca.pem")));
    wait_until_tuned(&private, &before);
    end(tune, Signal::KILL);
    assert_ne!(settings(&private), before);
    let restored = bench.line(&format!("restore --target {}", by("ca.pem")));
    assert!(restored.status.success(), "{}{}", stdout(&restored), stderr(&restored));
    assert_eq!(settings(&private), before);
    assert_eq!(bench.journal(), "");
    end(load, Signal::TERM);
}
