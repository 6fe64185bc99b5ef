//! The table of secrets with a shape of their own: a prefix, a scheme, a header.
//!
//! Every rule names the literals (`triggers`) without which it cannot match, so that its regex runs only on lines that contain
//! one. Triggers ignore ASCII case; the pattern decides. Group 1 of a pattern is the secret, the rest of the match is context
//! that stays.

use super::mask_rule::{MaskRule, left, new_rule};

/// Earlier rules win where two find exactly the same text, so the specific ones come first.
pub(super) const MASK_RULES: &[MaskRule] = &[
    new_rule("anthropic", &["sk-ant-"], r"(sk-ant-[A-Za-z0-9_-]{16,})"),
    new_rule("openrouter", &["sk-or-"], r"(sk-or-[A-Za-z0-9_-]{20,})"),
    new_rule(
        "openai",
        &["sk-"],
        // The plain form allows no dash among its first characters, since `sk-` also starts class names.
        concat!(
            left!(),
            r"(sk-(?:(?:proj|svcacct|admin|service|None)-[A-Za-z0-9_-]{20,}",
            r"|[A-Za-z0-9]{20,}[A-Za-z0-9_-]*))"
        ),
    ),
    new_rule("xai", &["xai-"], concat!(left!(), r"(xai-[A-Za-z0-9]{20,}[A-Za-z0-9_-]*)")),
    new_rule("groq", &["gsk_"], concat!(left!(), r"(gsk_[A-Za-z0-9]{32,})")),
    new_rule("perplexity", &["pplx-"], concat!(left!(), r"(pplx-[A-Za-z0-9]{32,})")),
    new_rule("replicate", &["r8_"], concat!(left!(), r"(r8_[A-Za-z0-9]{36,})")),
    new_rule("google", &["aiza"], concat!(left!(), r"(AIza[A-Za-z0-9_-]{35,})")),
    new_rule(
        "google-oauth",
        &["ya29.", "gocspx-", "1//0"],
        concat!(
            left!(),
            r"(ya29\.[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]+)*",
            r"|GOCSPX-[A-Za-z0-9_-]{20,}|1//0[A-Za-z0-9_-]{30,})"
        ),
    ),
    new_rule(
        "aws",
        &["akia", "asia", "abia", "acca"],
        concat!(left!(), r"((?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})(?-u:\b)"),
    ),
    new_rule(
        "aws-secret",
        &["secret_access_key", "secretaccesskey", "secret-access-key"],
        concat!(
            r#"(?i-u:secret[_-]?access[_-]?key)\\*["']?\]?[ \t]*(?:=>|:=|=|:)[ \t]*\\*["']?"#,
            r"([A-Za-z0-9/+]{40}={0,2})"
        ),
    ),
    new_rule(
        "github",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        r"(gh[pousr]_[A-Za-z0-9_]{30,}|github_pat_[A-Za-z0-9_]{22,})",
    ),
    new_rule(
        "gitlab",
        &["glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "gloas-", "glsoat-", "glft-"],
        r"(gl(?:pat|dt|rt|ptt|cbt|oas|soat|ft)-[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]+)*)",
    ),
    new_rule("slack", &["xox", "xapp-"], r"(xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{20,})"),
    new_rule(
        "slack",
        &["hooks.slack.com"],
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9_/+-]{16,})",
    ),
    new_rule("discord", &["/api/webhooks/"], r"/api/webhooks/[0-9]{15,21}/([A-Za-z0-9_-]{40,})"),
    new_rule(
        "stripe",
        &["sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"],
        concat!(left!(), r"([sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{24,}={0,2})"),
    ),
    new_rule("npm", &["npm_"], concat!(left!(), r"(npm_[A-Za-z0-9]{36,})")),
    new_rule("pypi", &["pypi-agei"], r"(pypi-AgEI[A-Za-z0-9_-]{16,})"),
    new_rule("huggingface", &["hf_"], concat!(left!(), r"(hf_[A-Za-z0-9]{30,})")),
    new_rule("sendgrid", &["sg."], concat!(left!(), r"(SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})")),
    new_rule("digitalocean", &["dop_v1_", "doo_v1_", "dor_v1_"], r"(do[por]_v1_[A-Za-z0-9]{32,})"),
    new_rule("docker", &["dckr_"], r"(dckr_[po]at_[A-Za-z0-9_-]{20,})"),
    new_rule("shopify", &["shpat_", "shpca_", "shppa_", "shpss_"], r"(shp(?:at|ca|pa|ss)_[A-Za-z0-9]{32,})"),
    new_rule("vault", &["hvs.", "hvb."], concat!(left!(), r"(hv[sb]\.[A-Za-z0-9_-]{24,})")),
    new_rule("atlassian", &["atatt3"], r"(ATATT3[A-Za-z0-9_=-]{40,})"),
    new_rule("age", &["age-secret-key-1"], r"(AGE-SECRET-KEY-1[A-Z0-9]{40,})"),
    new_rule("telegram", &[":aa"], concat!(r"(?:/bot|", left!(), r")([0-9]{8,10}:AA[A-Za-z0-9_-]{32,})")),
    new_rule("telegram", &["telegram", "/bot"], concat!(r"(?:/bot|", left!(), r")([0-9]{8,10}:[A-Za-z0-9_-]{34,})")),
    new_rule(
        "jwt",
        &["eyj"],
        concat!(
            left!(),
            r"(eyJ[A-Za-z0-9_-]{6,}(?:\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*",
            // Five parts: an encrypted token, whose second part has no fixed start.
            r"|\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]{8,}){2}\.[A-Za-z0-9_-]{16,}))"
        ),
    ),
    new_rule(
        "auth",
        &["authorization"],
        concat!(
            r#"(?i-u:authorization)\\*["'`]?\]?[ \t]*(?:=>|[:=,])[ \t]*\\*["'`]?"#,
            r"(?i-u:bearer|basic|token|bot|apikey|api-key|negotiate)(?:[ \t]+|%20)",
            r"([A-Za-z0-9._~+/=:-]{8,})"
        ),
    )
    .only_when(is_not_plain_word),
    new_rule(
        "auth",
        &["authorization"],
        concat!(r#"(?i-u:authorization)\\*["'`]?\]?[ \t]*:[ \t]*\\*["'`]?"#, r"([A-Za-z0-9._~+/=-]{16,})"),
    )
    .only_when(has_digit_and_lower_case),
    new_rule("auth", &["bearer"], concat!(left!(), r"(?i-u:bearer)(?:[ \t]+|%20)([A-Za-z0-9._~+/-]{16,}=*)"))
        .only_when(has_digit_and_lower_case),
    new_rule(
        "url",
        &["://"],
        // The password may contain an `@` itself: the last one before the path ends it.
        r#"://[^\x00-\x20/:@"'<>`\\]*:([^\x00-\x20/"'<>`\\]+)@"#,
    )
    .only_when(is_url_password),
    // A token in place of the user's name.
    new_rule("url", &["://"], r"://([A-Za-z0-9_-]{20,})@").only_when(has_digit_and_lower_case),
];

fn has_digit_and_lower_case(secret: &str) -> bool {
    secret.bytes().any(|byte| byte.is_ascii_digit()) && secret.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// Whether it is more than a plain word: `authorization: basic authentication` is a sentence.
fn is_not_plain_word(secret: &str) -> bool {
    secret.len() > 20 || !secret.bytes().all(|byte| byte.is_ascii_lowercase())
}

fn is_url_password(secret: &str) -> bool {
    // `${PASS}`, `{password}` and `%s` stand for a password that is filled in elsewhere.
    let is_reference = secret.starts_with(['$', '{', '%']) && secret.ends_with(['}', ')', 's'])
        || secret.starts_with('$') && secret[1..].bytes().all(|byte| byte == b'_' || byte.is_ascii_uppercase());
    // `host:8080?mail=a@b` has a port, not a password.
    let is_port = secret.find(['?', '#']).is_some_and(|position| {
        (1..=5).contains(&position) && secret[..position].bytes().all(|byte| byte.is_ascii_digit())
    });
    // Asterisks only mean that the password is masked already.
    !is_reference && !is_port && !secret.bytes().all(|byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_not_a_url_password_is_recognized() {
        for text in ["${PASS}", "$PASS", "{password}", "%s", "****", "8080?a=b"] {
            assert!(!is_url_password(text), "{text}");
        }
        for text in ["hunter2", "p", "$ecret9", "s3cr3t?x", "%41bc"] {
            assert!(is_url_password(text), "{text}");
        }
    }
}
