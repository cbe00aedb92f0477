//! Cutting user names and passwords out of what is kept.

/// Mount options whose value must not be kept.
const SECRET_OPTIONS: [&str; 12] = [
    "password",
    "password2",
    "passwd",
    "pass",
    "secret",
    "secretfile",
    "user",
    "username",
    "credentials",
    "cred",
    "key",
    "cruid",
];

/// The option as it may be kept: of a secret only its name is left.
pub(crate) fn without_secret(option: &str) -> String {
    match option.split_once('=') {
        Some((name, _)) if SECRET_OPTIONS.contains(&name) => format!("{name}=..."),
        _ => option.to_owned(),
    }
}

/// The mount source without a user's name and password before `@`.
pub(crate) fn without_user(source: &str) -> String {
    let Some((before, after)) = source.rsplit_once('@') else { return source.to_owned() };
    let scheme = before.rfind("//").map_or(0, |slashes| slashes + 2);
    // A blank or a single slash before the sign: part of a path, not of an address.
    if before[scheme..].contains(['/', ' ']) {
        return source.to_owned();
    }
    format!("{}{after}", &before[..scheme])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_and_values_go() {
        assert_eq!(without_secret("password=hunter2"), "password=...");
        assert_eq!(without_secret("data=ordered"), "data=ordered");
        assert_eq!(without_secret("user_xattr"), "user_xattr");
    }

    #[test]
    fn users_are_cut_from_addresses_only() {
        assert_eq!(without_user("ann:pw@server:/srv"), "server:/srv");
        assert_eq!(without_user("//ann@server/share"), "//server/share");
        assert_eq!(without_user("/dev/disk/by-id/a@b"), "/dev/disk/by-id/a@b");
        assert_eq!(without_user("pool/data@snapshot"), "pool/data@snapshot");
        assert_eq!(without_user("/dev/vda"), "/dev/vda");
    }
}
