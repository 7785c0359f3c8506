//! What git finds around it. Its filters, hooks and credential helpers are the user's own programs and get the user's
//! environment, as they would by hand. Left out is what would lead git to another repository, and what is none of its
//! business.

use crate::keys::is_key;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Variables that begin so: git's own, which name a repository, and ours, which hold credentials of the caller.
const WITHHELD: [&str; 2] = ["GIT_", "AOP_"];

/// The environment of a git, out of this one.
pub(super) fn of(all: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<OsString, OsString> {
    let is_withheld = |name: &OsStr| {
        let begins = |with: &&str| name.as_encoded_bytes().starts_with(with.as_bytes());
        WITHHELD.iter().any(begins) || is_key(name)
    };
    let mut env: BTreeMap<_, _> = all.filter(|(name, _)| !is_withheld(name)).collect();
    // What git says is read here; the signs that its programs read stay the user's.
    if let Some(all) = env.remove(OsStr::new("LC_ALL")).filter(|all| !all.is_empty()) {
        env.insert("LC_CTYPE".into(), all);
    }
    env.remove(OsStr::new("LANGUAGE"));
    env.insert("LC_MESSAGES".into(), "C".into());
    env.insert("GIT_TERMINAL_PROMPT".into(), "0".into());
    env
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    fn of(all: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        let all = all.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        super::of(all).into_iter().collect()
    }

    #[test]
    fn gits_programs_have_the_users_environment_without_other_repositories_and_credentials() {
        let kept = [("HOME", "/h"), ("LANG", "de_DE.UTF-8"), ("SSH_AUTH_SOCK", "/s")];
        let withheld = [
            ("GIT_DIR", "/other"),
            ("AOP_STORE", "postgres://u:p@h/d"),
            ("OPENAI_API_KEY", "k"),
            ("LANGUAGE", "de"),
        ];
        let always = [("GIT_TERMINAL_PROMPT", "0"), ("LC_MESSAGES", "C")];
        let mut expected = [&kept[..], &always].concat();
        expected.sort_unstable();
        let expected: Vec<_> =
            expected.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        assert_eq!(of(&[&kept[..], &withheld].concat()), expected);
        let seen = of(&[("LC_ALL", "de_DE.UTF-8"), ("LC_CTYPE", "C"), ("LC_MESSAGES", "de_DE.UTF-8")]);
        let expected = [("GIT_TERMINAL_PROMPT", "0"), ("LC_CTYPE", "de_DE.UTF-8"), ("LC_MESSAGES", "C")];
        assert_eq!(seen, expected.map(|(name, value)| (name.into(), value.into())));
    }
}
