//! Samples of every kind of secret that is in use, and strings that only look like one. The samples are made here, so that no
//! scanner takes this file for a leak.

use super::*;

const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const MIXED: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const DIGITS: &str = "0123456789";

/// Fills a template: `{16h}` stands for sixteen characters of the set `h`.
fn fill_template(template: &str, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next_char = |alphabet: &str| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let position = usize::try_from(state >> 33).unwrap() % alphabet.len();
        char::from(alphabet.as_bytes()[position])
    };
    let mut filled = String::new();
    let mut remaining = template;
    while let Some(start) = remaining.find('{') {
        filled.push_str(&remaining[..start]);
        let end = start + remaining[start..].find('}').unwrap();
        let (count, set) = remaining[start + 1..end].split_at(end - start - 2);
        let alphabet = match set {
            "h" => HEX,
            "u" => UPPER,
            "l" => LOWER,
            "m" => MIXED,
            "d" => DIGITS,
            _ => panic!("{template}"),
        };
        // A run always has a digit and a letter, as real ones do.
        let run: String = (0..count.parse::<usize>().unwrap()).map(|_| next_char(alphabet)).collect();
        filled.push_str(&run);
        remaining = &remaining[end + 1..];
    }
    filled + remaining
}

/// Templates of secrets, one for each kind.
const SECRETS: &[&str] = &[
    "sk-ant-api03-{40m}",
    "sk-or-v1-{64h}",
    "sk-proj-{48m}",
    "sk-{48m}",
    "sk-svcacct-{48m}",
    "xai-{80m}",
    "gsk_{52m}",
    "pplx-{48m}",
    "r8_{37m}",
    "AIza{35m}",
    "ya29.{60m}",
    "GOCSPX-{28m}",
    "1//0{60m}",
    "AKIA{16u}",
    "ASIA{16u}",
    "aws_secret_access_key = {40m}",
    "ghp_{36m}",
    "gho_{36m}",
    "ghs_{36m}",
    "github_pat_{22m}_{59m}",
    "glpat-{20m}",
    "glrt-{20m}",
    "xoxb-{12d}-{12d}-{24m}",
    "xapp-1-A{10u}-{13d}-{64h}",
    "https://hooks.slack.com/services/T{8u}/B{10u}/{24m}",
    "https://discord.com/api/webhooks/{18d}/{68m}",
    "DISCORD=MTk4NjIyNDgzNDcxOTI1MjQ4.{6m}.{38m}",
    "sk_live_{24m}",
    "rk_live_{24m}",
    "whsec_{32m}",
    "npm_{36m}",
    "pypi-AgEIcHlwaS5vcmc{60m}",
    "hf_{34m}",
    "SG.{22m}.{43m}",
    "SK{32h}",
    "dop_v1_{64h}",
    "dckr_pat_{27m}",
    "shpat_{32h}",
    "hvs.{90m}",
    "ATATT3{60m}",
    "ATBB{32m}",
    "AGE-SECRET-KEY-1{58u}",
    "{9d}:AA{33m}",
    "eyJ{20m}.eyJ{40m}.{43m}",
    "Authorization: Basic {30m}",
    "Authorization: Bearer {40m}",
    "postgres://user:{16m}@host/db",
    "https://{32m}@github.com/a/b",
    "p8e-{32m}",
    "AIRTABLE=pat{14m}.{64h}",
    "LTAI{20m}",
    "AKC{73m}",
    "{3m}8Q~{34m}",
    "https://a.blob.core.windows.net/c?sv=2022&sig={43m}%3D",
    "AccountKey={86m}==",
    "SharedAccessKey={43m}=",
    "BSA{28m}",
    "xkeysib-{64h}-{16m}",
    "bkua_{40h}",
    "cio{32m}",
    "csk-{48l}",
    "CCIPAT_{22m}_{40h}",
    "CLOJARS_{60l}",
    "v1.0-{24h}-{146h}",
    "cloudinary://{15d}:{27m}@name",
    "CFPAT-{43m}",
    "dapi{32h}",
    "ddp_{36m}",
    "\"auth\": \"{40m}==\"",
    "dp.pt.{43m}",
    "dp.st.prod.{43m}",
    "token: 'sl.{140m}'",
    "duffel_live_{43m}",
    "dt0c01.{24u}.{64u}",
    "EZAK{54m}",
    "xi-api-key: sk_{48h}",
    "EAA{150m}",
    "figd_{40m}",
    "AAAA{7m}:{140m}",
    "fc-{32h}",
    "fw_{24m}",
    "FLWSECK-{32h}-X",
    "fo1_{43m}",
    "FlyV1 fm2_{120m}",
    "fio-u-{64m}",
    "glc_{60m}",
    "glsa_{32m}_{8h}",
    "pat.{22m}.{24h}.{20m}",
    "HRKU-{36m}",
    "pat-na1-{8h}-{4h}-{4h}-{4h}-{12h}",
    "ico-{32m}",
    "    client-key-data: {200m}=",
    "lsv2_pt_{32h}_{10h}",
    "sdk-{8h}-{4h}-{4h}-{4h}-{12h}",
    "lin_api_{40m}",
    "\"live_{35h}\"",
    "{32h}-us14",
    "key-{32h}",
    "mailgun: {32h}-{8h}-{8h}",
    "sk.eyJ{60m}.{22m}",
    "{6m}_{29m}_mmk",
    "napi_{64l}",
    "nfp_{40m}",
    "NRAK-{27u}",
    "ntn_{46m}",
    "secret_{43m}",
    "oy2{43l}",
    "nvapi-{64m}",
    "\"API-{30u}\"",
    "ops_eyJ{200m}",
    "sha256~{43m}",
    "pcsk_{6m}_{60m}",
    "access-production-{8h}-{4h}-{4h}-{4h}-{12h}",
    "pscale_tkn_{43m}",
    "phx_{43m}",
    "PMAK-{24h}-{34h}",
    "pnu_{36m}",
    "pul-{40h}",
    "rzp_live_{14m}",
    "rdme_{70l}",
    "rnd_{30m}",
    "\"re_{8m}_{24m}\"",
    "rubygems_{48h}",
    "tk-us-{48m}",
    "sntrys_{100m}",
    "sntryu_{64h}",
    "shippo_live_{40h}",
    "sqp_{40h}",
    "sgp_{40h}",
    "sq0csp-{43m}",
    "EAAA{60m}",
    "sbp_{40h}",
    "sb_secret_{31m}",
    "tskey-auth-{12m}-{32m}",
    "tvly-{32m}",
    "https://a.webhook.office.com/webhookb2/{36h}@{36h}/IncomingWebhook/{32h}",
    "{14m}.atlasv1.{67m}",
    "tgp_v1_{43m}",
    "tfp_{60m}",
    "AQVN{36m}",
    "api_key: X-API-Key: {32m}",
    "password: Password: {16m}",
    "DATABASE_PASSWORD={20m}",
    "\"client_secret\": \"{40m}\"",
];

/// Strings that agents print all the time.
const HARMLESS: &[&str] = &[
    "{8h}-{4h}-{4h}-{4h}-{12h}",
    "commit {40h}",
    "sha256:{64h}",
    "{32h}",
    "integrity sha512-{86m}==",
    "data:image/png;base64,iVBORw0KGgo{200m}=",
    "AAAA{300m}",
    "https://example.com/path/to/a/very-long-name-of-a-page-2024",
    "https://user@example.com/repository",
    "src/components/pattern_matching_of_long_names.rs",
    "the token is refreshed before it expires",
    "password: required",
    "fn access_token(&self) -> AccessToken",
    "let api_key = std::env::var(\"API_KEY\")?;",
    "API-REFERENCE-GUIDE",
    "test_{35l}",
    "sk-card-title sk-button-primary",
    "a task_queue and a disk_cache",
    "re_exported_names_of_modules",
    "key-value-store",
    "pat-a-cake, pat-a-cake",
    "release v1.0-beta.1-rc",
    "sha256~",
    "live_reload: true",
    "t1.micro",
    "access-control-allow-origin",
    "npm_config_registry",
    "oy2",
    "nightly-2024-05-01-x86_64-unknown-linux-gnu",
    "node_modules/.pnpm/@babel+core@7.24.5/node_modules/@babel/core",
    "0x{16h}",
    "{13d}",
    "2024-05-01T12:00:00.000Z",
    "Private-Lines are a part of the format",
    "auth: \"oauth2\"",
    "\"auth\": \"none\"",
    "&sig=short",
    "class=\"pk-live_preview\"",
    "EAAAA is a word in base64",
    "SKU1234567890",
    "secret_santa_participants_of_the_year",
];

#[test]
fn every_kind_of_secret_is_masked() {
    let masker = Masker::new([]);
    let mut leaked = Vec::new();
    for (number, template) in SECRETS.iter().enumerate() {
        for seed in 0..5 {
            let text = fill_template(template, 1 + seed * 1_000 + number as u64);
            let masked = masker.mask(&text);
            // Nothing of the longest run of random characters may be left.
            let longest_run = text.split(|c: char| !c.is_ascii_alphanumeric()).max_by_key(|run| run.len()).unwrap();
            if !masked.contains(MASK_START) || masked.contains(longest_run) {
                leaked.push(format!("{text} -> {masked}"));
            }
        }
    }
    assert!(SECRETS.len() >= 127, "{}", SECRETS.len());
    assert!(leaked.is_empty(), "{leaked:#?}");
}

#[test]
fn harmless_strings_stay_as_they_are() {
    let masker = Masker::new([]);
    let mut mangled = Vec::new();
    for (number, template) in HARMLESS.iter().enumerate() {
        for seed in 0..20 {
            let text = fill_template(template, 1 + seed * 1_000 + number as u64);
            if masker.mask(&text) != text {
                mangled.push(format!("{text} -> {}", masker.mask(&text)));
            }
        }
    }
    assert!(HARMLESS.len() >= 41, "{}", HARMLESS.len());
    assert!(mangled.is_empty(), "{mangled:#?}");
}

#[test]
fn every_pattern_compiles_and_has_one_group() {
    for rule in all_rules() {
        let regex = Regex::new(rule.pattern).unwrap_or_else(|error| panic!("{}: {error}", rule.mask_kind));
        assert_eq!(regex.captures_len(), 2, "{}", rule.mask_kind);
    }
}

#[test]
fn every_rule_has_triggers_and_a_short_lower_case_kind() {
    for rule in all_rules() {
        assert!(!rule.triggers.is_empty(), "{}", rule.mask_kind);
        for trigger in rule.triggers {
            assert_eq!(*trigger, trigger.to_ascii_lowercase());
            assert!(trigger.len() >= 2 && !trigger.contains('\n'), "{trigger}");
        }
        assert!(rule.mask_kind.len() <= 16);
        assert!(rule.mask_kind.bytes().all(|b| b == b'-' || b.is_ascii_lowercase()));
    }
    assert!(all_rules().count() < 126, "rules are a set of 128 bits");
}
