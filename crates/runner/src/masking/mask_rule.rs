//! What a rule for secrets with a shape of their own consists of.

use regex::Regex;

/// One entry of the table.
pub(super) struct MaskRule {
    pub(super) mask_kind: &'static str,
    pub(super) triggers: &'static [&'static str],
    pub(super) pattern: &'static str,
    /// A final check of the secret, for what a regex expresses badly.
    pub(super) accepts_secret: fn(&str) -> bool,
}

/// Kinds that do not come from the table.
pub(super) const ENVIRONMENT_KIND: &str = "env";
pub(super) const PEM_KIND: &str = "pem";
pub(super) const ASSIGNED_KIND: &str = "secret";

/// Where a token may start. A plain word border is not enough: in escaped or coloured text the last letter of `\n`, `\u003d`,
/// `%3D` or `ESC[0m` touches the token.
macro_rules! left {
    () => {
        r"(?:(?-u:\b)|_|\\[nrtbf]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|\x1b\[[0-9;]*m)"
    };
}

pub(super) const fn new_rule(
    mask_kind: &'static str,
    triggers: &'static [&'static str],
    pattern: &'static str,
) -> MaskRule {
    MaskRule { mask_kind, triggers, pattern, accepts_secret: accept_always }
}

impl MaskRule {
    pub(super) const fn only_when(mut self, accepts_secret: fn(&str) -> bool) -> MaskRule {
        self.accepts_secret = accepts_secret;
        self
    }
}

pub(super) use left;

/// Compiles a pattern of the source. The tests compile every one, so a failure cannot ship; hiding it would silently drop a
/// rule.
pub(super) fn compile_pattern(pattern_name: &str, pattern: &str) -> Regex {
    match Regex::new(pattern) {
        Ok(regex) => regex,
        Err(error) => unreachable!("rule {pattern_name}: {error}"),
    }
}

fn accept_always(_: &str) -> bool {
    true
}
