//! Masks secrets before they reach journal, log or screen: replaces them by `[masked:KIND]`.
//!
//! Three sources define what a secret is: a table of shapes (tokens with a prefix, headers, passwords in URLs, see
//! `token_rules`), the name a value is assigned to (`assignments`), and the values of environment variables with a telling name.
//! Private keys in PEM form are removed first (`pem_keys`), then the text is searched line by line. One automaton searches for
//! the literals without which no rule can match; a line without any is copied, on the others only the triggered rules run.
//!
//! Where found secrets overlap, their union is masked. Every line is masked until nothing more is found, so masking masked text
//! changes nothing (for lines under 64 KiB; longer ones are searched in parts).
//!
//! Deliberately not done: no guessing by entropy (hashes, ids and images would suffer); no decoding, so a secret in base64, hex
//! or percent-encoding passes, as does one split over lines or cut below the length of its kind; no secrets named only by
//! prose, by position (`--password x`, `.netrc`) or by XML elements; no session cookies; no end of a private key whose first
//! line was never shown. A value assigned to a secret name is left if it is shorter than 8 characters, a number, a path, a
//! reference, a placeholder or a plain lower-case identifier; and, if it is unquoted and not of the form `NAME=value`, if it
//! reads as source code (a call, `obj.field`, `TypeName`).

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};
use regex::Regex;

mod assign;
mod pem;
mod rules;
mod stream;

pub use stream::Stream;

const MARK: &str = "[masked:";

/// How much of an overlong line is searched at once, and how much of that is searched again.
#[derive(Clone, Copy)]
struct Limits {
    line: usize,
    overlap: usize,
}

const LIMITS: Limits = Limits { line: 64 * 1024, overlap: 16 * 1024 };

/// Longer values of the environment are searched for in pieces, which stay far below the overlap.
const LONGEST_KNOWN: usize = 4 * 1024;

/// How much of a known value goes into the trigger automaton: its size should not depend on the values.
const KNOWN_TRIGGER: usize = 12;

const SHORTEST_KNOWN: usize = 8;

/// Replaces secrets by `[masked:KIND]` (for instance `[masked:github]`).
///
/// Cheap to clone; all clones share the compiled rules.
#[derive(Clone)]
pub struct Masker {
    inner: Arc<Inner>,
}

struct Inner {
    triggers: AhoCorasick,
    /// For each trigger the rule it calls, as a bit.
    calls: Vec<u64>,
    rules: Vec<Regex>,
    assignments: assign::Assignments,
    known: AhoCorasick,
    pem: pem::Patterns,
    limits: Limits,
}

/// A secret that was found in a line.
struct Find {
    /// The start of the match including its context.
    context: usize,
    secret: Range<usize>,
    kind: &'static str,
}

const KNOWN_BIT: u64 = 1 << 63;
const ASSIGNED_BIT: u64 = 1 << 62;

impl Masker {
    /// Compiles the rules. `environment` has the pairs (name, value) of the environment. The name decides which values are
    /// secret; those are masked wherever they occur.
    pub fn new<'a>(known: impl IntoIterator<Item = (&'a str, &'a str)>) -> Masker {
        Masker::with_limits(known, LIMITS)
    }

    fn with_limits<'a>(known: impl IntoIterator<Item = (&'a str, &'a str)>, limits: Limits) -> Masker {
        let known = known_patterns(known);
        let mut literals: Vec<&str> = Vec::new();
        let mut calls = Vec::new();
        let mut call = |bit: u64, literal| {
            literals.push(literal);
            calls.push(bit);
        };
        // The index of a rule is its bit, so a trigger names its rule by position.
        for (index, rule) in rules::RULES.iter().enumerate() {
            for trigger in rule.triggers {
                call(1 << index, *trigger);
            }
        }
        for trigger in assign::TRIGGERS {
            call(ASSIGNED_BIT, *trigger);
        }
        // A known value takes part with its first bytes only; the full values are searched for on triggered lines.
        for value in &known {
            call(KNOWN_BIT, &value[..value.floor_char_boundary(KNOWN_TRIGGER)]);
        }
        let rules = rules::RULES.iter();
        Masker {
            inner: Arc::new(Inner {
                triggers: automaton(&literals, AhoCorasickKind::DFA, true),
                calls,
                rules: rules.map(|r| rules::compile(r.kind, r.pattern)).collect(),
                assignments: assign::Assignments::new(),
                known: automaton(&known, AhoCorasickKind::ContiguousNFA, false),
                pem: pem::Patterns::new(limits.line),
                limits,
            }),
        }
    }

    /// Masks a complete text. Borrows it if there was nothing to mask.
    #[must_use]
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let pem = &self.inner.pem;
        if !pem.occur_in(text) {
            return self.mask_keyless(text);
        }
        let mut keyless = String::with_capacity(text.len());
        // A whole text is the last piece of itself, so nothing is held back.
        pem::step(pem, &mut pem::State::default(), text, true, &mut keyless);
        Cow::Owned(self.mask_keyless(&keyless).into_owned())
    }

    /// Returns a masker for text that arrives in pieces.
    #[must_use]
    pub fn stream(&self) -> Stream {
        Stream::new(self.clone())
    }

    /// Runs the second stage on a complete text.
    fn mask_keyless<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = String::new();
        let copied = self.mask_lines(text, &mut out);
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[copied..]);
        Cow::Owned(out)
    }

    /// Masks complete lines. Writes up to the last change and returns the position in `text` up to which it wrote.
    fn mask_lines(&self, text: &str, out: &mut String) -> usize {
        let (mut at, mut copied) = (0, 0);
        while let Some(hit) = self.inner.triggers.find(Input::new(text).range(at..)) {
            // The whole line around the trigger is searched, since the context of a secret may be anywhere in it.
            let start = text[at..hit.start()].rfind('\n').map_or(at, |n| at + n + 1);
            let end = text[hit.end()..].find('\n').map_or(text.len(), |n| hit.end() + n);
            if let Some(masked) = self.mask_line(&text[start..end]) {
                out.push_str(&text[copied..start]);
                out.push_str(&masked);
                copied = end;
            }
            at = end;
        }
        copied
    }

    /// Masks a line of any length, without its line end. Returns `None` if there is nothing to mask.
    fn mask_line(&self, line: &str) -> Option<String> {
        if line.len() < self.inner.limits.line {
            return self.mask_short(line);
        }
        let mut out = String::with_capacity(line.len());
        let mut rest = line;
        // What is left after a window starts with the overlap, which is searched again.
        while rest.len() >= self.inner.limits.line {
            rest = &rest[self.mask_start(rest, &mut out)..];
        }
        match self.mask_short(rest) {
            Some(masked) => out.push_str(&masked),
            None => out.push_str(rest),
        }
        (out != line).then_some(out)
    }

    /// Masks the start of an overlong line and returns its length. The result depends on the window only, so that a stream cuts
    /// at the same positions as [`Masker::mask`].
    fn mask_start(&self, line: &str, out: &mut String) -> usize {
        let Limits { line: limit, overlap } = self.inner.limits;
        let window = &line[..line.floor_char_boundary(limit)];
        let mut cut = window.floor_char_boundary(window.len().saturating_sub(overlap));
        let near = window.floor_char_boundary(cut.saturating_sub(overlap / 16));
        // The border of a word is preferred: what follows is searched without what came before.
        if let Some(space) = window[near..cut].rfind([' ', '\t', ',']) {
            cut = near + space + 1;
        }
        // The cut must not go through a secret, so it moves before any secret that crosses it.
        let mut finds = self.finds(window);
        finds.sort_by_key(|find| std::cmp::Reverse(find.context));
        for find in &finds {
            if find.context < cut && cut < find.secret.end {
                cut = find.context;
            }
        }
        if cut == 0 {
            cut = window.len(); // one find from the start beyond the cut: mask it here and now
        }
        match self.mask_short(&window[..cut]) {
            Some(masked) => out.push_str(&masked),
            None => out.push_str(&window[..cut]),
        }
        cut
    }

    /// Masks until nothing more is found. This ends, since each round turns text into masks and no round changes a mask.
    fn mask_short(&self, line: &str) -> Option<String> {
        let mut masked = self.round(line)?;
        while let Some(more) = self.round(&masked) {
            masked = more;
        }
        Some(masked)
    }

    fn round(&self, line: &str) -> Option<String> {
        let finds = merge(self.finds(line));
        if finds.is_empty() {
            return None;
        }
        // Parts that are masks already stay, so that masking masked text changes nothing.
        let pieces = without_marks(finds, &marks(line));
        let mut out = String::with_capacity(line.len());
        let mut copied = 0;
        for (range, kind) in &pieces {
            out.push_str(&line[copied..range.start]);
            out.push_str(MARK);
            out.push_str(kind);
            out.push(']');
            copied = range.end;
        }
        out.push_str(&line[copied..]);
        (!pieces.is_empty()).then_some(out)
    }

    fn finds(&self, line: &str) -> Vec<Find> {
        let inner = &*self.inner;
        let mut finds = Vec::new();
        let hits = inner.triggers.find_overlapping_iter(line);
        // One pass over the line collects the rules that could match at all.
        let called = hits.fold(0, |bits, hit| bits | inner.calls[hit.pattern().as_usize()]);
        if called & KNOWN_BIT != 0 {
            finds.extend(inner.known.find_overlapping_iter(line).map(|hit| Find {
                context: hit.start(),
                secret: hit.range(),
                kind: rules::ENV,
            }));
        }
        for (index, rule) in rules::RULES.iter().enumerate() {
            if called & 1 << index == 0 {
                continue;
            }
            for found in inner.rules[index].captures_iter(line) {
                let (Some(whole), Some(secret)) = (found.get(0), found.get(1)) else {
                    continue;
                };
                // Group 1 is the secret; the rest of the match is context that stays visible.
                if (rule.accept)(secret.as_str()) {
                    finds.push(Find { context: whole.start(), secret: secret.range(), kind: rule.kind });
                }
            }
        }
        if called & ASSIGNED_BIT != 0 {
            inner.assignments.find(line, |context, secret| {
                finds.push(Find { context, secret, kind: rules::ASSIGNED });
            });
        }
        finds
    }
}

impl fmt::Debug for Masker {
    /// Shows nothing, since the known values are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Masker").finish_non_exhaustive()
    }
}

/// Joins overlapping secrets, in order. The longest one names the kind; among equals the first one found, that is a known value
/// before the table before an assignment (the sort is stable).
fn merge(mut finds: Vec<Find>) -> Vec<Find> {
    finds.sort_by_key(|find| find.secret.start);
    let mut merged: Vec<Find> = Vec::with_capacity(finds.len());
    let mut longest = 0;
    for find in finds {
        let len = find.secret.len();
        match merged.last_mut() {
            Some(last) if find.secret.start < last.secret.end => {
                // The kind of the longest part is the most specific name for the union.
                last.secret.end = last.secret.end.max(find.secret.end);
                if len > longest {
                    (last.kind, longest) = (find.kind, len);
                }
            }
            _ => {
                longest = len;
                merged.push(find);
            }
        }
    }
    merged
}

/// Finds the masks that a line already has.
fn marks(line: &str) -> Vec<Range<usize>> {
    let starts = line.match_indices(MARK).map(|(at, _)| at);
    let mark = |at: usize| {
        let kind = at + MARK.len();
        // No kind is longer, so the search for the bracket is bounded.
        let end = kind + line[kind..].bytes().take(24).position(|b| b == b']')?;
        rules::is_kind(&line[kind..end]).then_some(at..end + 1)
    };
    starts.filter_map(mark).collect()
}

/// Returns the ranges of the secrets that are not masked yet.
fn without_marks(finds: Vec<Find>, marks: &[Range<usize>]) -> Vec<(Range<usize>, &'static str)> {
    let mut pieces = Vec::with_capacity(finds.len());
    for Find { secret, kind, .. } in finds {
        let mut start = secret.start;
        let first = marks.partition_point(|mark| mark.end <= start);
        let inside = marks[first..].iter();
        for mark in inside.take_while(|mark| mark.start < secret.end) {
            if start < mark.start {
                pieces.push((start..mark.start, kind));
            }
            start = mark.end;
        }
        if start < secret.end {
            pieces.push((start..secret.end, kind));
        }
    }
    pieces
}

fn automaton<P: AsRef<[u8]>>(patterns: &[P], kind: AhoCorasickKind, fold: bool) -> AhoCorasick {
    let mut builder = AhoCorasick::builder();
    builder.match_kind(MatchKind::Standard);
    builder.kind(Some(kind)).ascii_case_insensitive(fold);
    match builder.build(patterns) {
        Ok(automaton) => automaton,
        // This happens only beyond two billion states.
        Err(error) => unreachable!("automaton: {error}"),
    }
}

/// Returns the values to search for, each without a line end.
fn known_patterns<'a>(known: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut patterns = Vec::new();
    for (name, value) in known {
        let value = value.trim();
        // Short or trivial values would mask ordinary text everywhere.
        if !is_secret_variable(name)
            || value.len() < SHORTEST_KNOWN
            || assign::is_number(value)
            || assign::is_path(value)
            || ["true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word))
        {
            continue;
        }
        if value.contains('\n') {
            // A value of several lines is printed line by line. Short lines say too little, and the marker lines of a key are
            // public.
            let lines = value.lines().map(str::trim);
            let telling = lines.filter(|l| l.len() >= 2 * SHORTEST_KNOWN && !l.starts_with("-----"));
            patterns.extend(telling.map(str::to_owned));
        } else {
            patterns.push(value.to_owned());
        }
        // The journal holds the value as a JSON string.
        let escaped = escape(value);
        if escaped != value {
            patterns.push(escaped);
        }
    }
    let mut pieces: Vec<String> = patterns.iter().flat_map(|p| cut_known(p)).collect();
    pieces.sort();
    pieces.dedup();
    pieces
}

fn is_secret_variable(name: &str) -> bool {
    const WORDS: [&str; 10] = [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "CREDENTIAL",
        "AUTH",
        "CREDENTIALS",
        "APIKEY",
        "PASSPHRASE",
    ];
    name.split('_').any(|part| WORDS.iter().any(|word| part.eq_ignore_ascii_case(word)))
}

fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ => out.push(c),
        }
    }
    out
}

/// Splits a value into pieces of limited length; a short remainder stays with the piece before it.
fn cut_known(value: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = value;
    while rest.len() > LONGEST_KNOWN + SHORTEST_KNOWN {
        let (piece, more) = rest.split_at(rest.floor_char_boundary(LONGEST_KNOWN));
        pieces.push(piece.to_owned());
        rest = more;
    }
    pieces.push(rest.to_owned());
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Looks random, but is not.
    fn run(len: usize) -> String {
        "aB3dE6gH9jK2mN5pQ8sT1vW4xY7z".chars().cycle().take(len).collect()
    }

    fn hex(len: usize) -> String {
        "0a1b2c3d4e5f6789".chars().cycle().take(len).collect()
    }

    fn plain() -> Masker {
        Masker::new([])
    }

    /// Secrets with their kinds, assembled here so that no scanner takes this file for a leak.
    fn secrets() -> Vec<(&'static str, String)> {
        let mut all = vec![
            ("anthropic", format!("sk-{}-api03-{}", "ant", run(95))),
            ("openai", format!("sk-{}", run(48))),
            ("openai", format!("sk-{}-{}_{}", "proj", run(60), run(40))),
            ("openrouter", format!("sk-{}-v1-{}", "or", hex(64))),
            ("xai", format!("xa{}-{}", "i", run(80))),
            ("groq", format!("gs{}_{}", "k", run(52))),
            ("perplexity", format!("ppl{}-{}", "x", run(48))),
            ("replicate", format!("r{}_{}", 8, run(37))),
            ("google", format!("AI{}{}", "za", run(35))),
            ("google-oauth", format!("ya{}.{}", 29, run(120))),
            ("google-oauth", format!("GOC{}-{}", "SPX", run(28))),
            ("aws", format!("AK{}{}", "IA", "Q7".repeat(8))),
            ("aws", format!("AS{}{}", "IA", "Q7".repeat(8))),
            ("github", format!("github_{}_{}_{}", "pat", run(22), run(59))),
            ("gitlab", format!("gl{}-{}", "pat", run(20))),
            ("slack", format!("xo{}-{}-{}-{}", "xb", "1234567890", "1234567890", run(24))),
            ("slack", format!("xap{}-1-A012-{}-{}", "p", "1234567890", hex(64))),
            ("stripe", format!("sk_{}_{}", "live", run(24))),
            ("stripe", format!("rk_{}_{}", "live", run(24))),
            ("stripe", format!("sk_{}_{}", "test", run(24))),
            ("npm", format!("np{}_{}", "m", run(36))),
            ("pypi", format!("py{}-Ag{}{}", "pi", "EI", run(150))),
            ("huggingface", format!("h{}_{}", "f", run(34))),
            ("sendgrid", format!("S{}.{}.{}", "G", run(22), run(43))),
            ("digitalocean", format!("do{}_v1_{}", "p", hex(64))),
            ("docker", format!("dc{}_pat_{}", "kr", run(27))),
            ("shopify", format!("shp{}_{}", "at", hex(32))),
            ("vault", format!("hv{}.{}", "s", run(90))),
            ("atlassian", format!("AT{}3{}", "ATT", run(180))),
            ("age", format!("AGE-{}-KEY-1{}", "SECRET", "Q7".repeat(29))),
            ("telegram", format!("{}:A{}{}", "123456789", "A", run(33))),
            ("jwt", format!("ey{}.ey{}.{}", "JhbGciOi", "JzdWIiOi", run(43))),
            ("jwt", format!("ey{}..{}.{}.{}", "JhbGciOi", run(16), run(80), run(22))),
        ];
        for letter in ["p", "o", "u", "s", "r"] {
            all.push(("github", format!("gh{letter}_{}", "x".repeat(36))));
        }
        all
    }

    #[test]
    fn tokens_with_a_shape_are_masked_wherever_they_stand() {
        let masker = plain();
        for (kind, secret) in secrets() {
            let frames = [
                "@",
                "see @ there",
                "(@)",
                "\"@\"",
                "a\n@\nb",
                "x\\n@\\ny",
                "é@é",
                "<@>",
                "x=@",
                "\x1b[31m@\x1b[0m",
                "?q=@&r=1",
                "[masked:env]@",
                "{\"text\":\"a\\t@\\n\"}",
            ];
            for frame in frames {
                let text = frame.replace('@', &secret);
                let expected = frame.replace('@', &format!("[masked:{kind}]"));
                assert_eq!(masker.mask(&text), expected, "{kind}: {text}");
            }
        }
    }

    #[test]
    fn secrets_with_a_context_are_masked_without_it() {
        let pem = |word: &str| format!("-----{word} {} KEY-----", "PRIVATE");
        let twilio = format!("S{}{}", "K", hex(32));
        let (short, key) = (run(12), run(40));
        let hook = format!("hooks.slack{}", ".com/services/");
        let table: Vec<(String, String, &str)> = vec![
            (format!("https://{hook}"), format!("T01/B02/{}", run(24)), "slack"),
            ("AccountSid: ".into(), twilio.clone(), "twilio"),
            ("\"sid\": \"".into(), twilio, "twilio"),
            ("aws_secret_access_key = ".into(), key.clone(), "aws-secret"),
            ("AWS_SECRET_ACCESS_KEY=".into(), key.clone(), "aws-secret"),
            ("\"SecretAccessKey\": \"".into(), key.clone(), "aws-secret"),
            ("Authorization: Bearer ".into(), short.clone(), "auth"),
            ("authorization: basic ".into(), format!("{}==", run(22)), "auth"),
            ("-H 'Authorization: token ".into(), key.clone(), "auth"),
            (r#"\"Authorization\": \"Bearer "#.into(), key.clone(), "auth"),
            ("set(\"Authorization\", \"Bearer ".into(), key.clone(), "auth"),
            ("sent as bearer ".into(), key.clone(), "auth"),
            ("Authorization: ".into(), key.clone(), "auth"),
            ("https://api.telegram.org/bot".into(), format!("123456789:{}", run(35)), "telegram"),
            (format!("ok\n{}\n", pem("BEGIN")), key.clone(), "pem"),
            ("MY_API_KEY=".into(), short.clone(), "secret"),
            ("export X_SECRET=\"".into(), short.clone(), "secret"),
            ("db_password: ".into(), short.clone(), "secret"),
            ("{\"service_key\": \"".into(), short.clone(), "secret"),
            ("{\\\"auth_token\\\":\\\"".into(), short.clone(), "secret"),
            ("GITHUB_TOKEN=".into(), secrets()[33].1.clone(), "github"),
        ];
        let masker = plain();
        for (before, secret, kind) in table {
            let text = format!("{before}{secret}");
            let kept = if kind == "pem" { "ok\n" } else { &before };
            assert_eq!(masker.mask(&text), format!("{kept}[masked:{kind}]"), "{text}");
        }
    }

    #[test]
    fn of_a_url_only_the_password_is_masked() {
        let table = [
            ("postgres://user:@host/db", "hunter2"),
            ("redis://:@127.0.0.1:6379", "p@ss:w0rd"),
            ("git clone https://bob:@example.org/x.git && ls", "pw"),
            ("amqp://guest:@mq, http://host:80/x@y", "x#y"),
        ];
        for (frame, password) in table {
            let text = frame.replacen(":@", &format!(":{password}@"), 1);
            let expected = frame.replacen(":@", ":[masked:url]@", 1);
            assert_eq!(plain().mask(&text), expected);
        }
    }

    #[test]
    fn harmless_text_is_left_and_borrowed() {
        let (hash, sum) = (hex(40), hex(64));
        let own = [
            format!("commit {hash}"),
            format!("index {}..{}", hex(7), hex(9)),
            format!("sha256:{sum} done"),
            format!("Cargo.lock checksum = \"{sum}\""),
            format!("value SK{} alone", hex(32)),
            format!("sk-{}", "learn-estimator-with-a-long-name"),
        ];
        let fixed = [
            "",
            "\n\n",
            "123e4567-e89b-12d3-a456-426614174000",
            "monkey=banana12345",
            "keyboard: something-long",
            "token_count=1234567890",
            "max_tokens: 100000",
            "the API key must be rotated",
            "primary_key=customer_id",
            "iVBORw0KGgoAAAA=",
            "api_key=short",
            "API_KEY=${OPENAI_API_KEY}",
            "API_KEY=<your-api-key-here>",
            "use_token: true",
            "secret: null",
            "my_token: 1234567890123",
            "API_KEY=",
            "https://example.org:8080/a?b=c@d",
            "http://[::1]:80/ mail a@b.org",
            "postgres://user:${PASSWORD}@host/db",
            "Authorization: Bearer <token>",
            "Authorization: Bearer $TOKEN",
            "bearer authentication-required-here",
            "authorization: basic authentication",
            "risk-averse task-oriented-programming",
            "msg.send.later",
            "[masked:github] API_KEY=[masked:secret]",
            "12:34:56 aa:bb:cc",
            "npm_config_registry_with_a_very_long_name_indeed",
            "hf_hub_download(repo_id, filename)",
            "tokens: 12, hotkey=ctrl-alt-f12",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA me@host",
        ];
        let masker = plain();
        for text in own.iter().map(String::as_str).chain(fixed) {
            let masked = masker.mask(text);
            assert!(matches!(masked, Cow::Borrowed(_)), "{text:?} gave {masked:?}");
        }
    }

    #[test]
    fn known_values_are_masked_by_the_name_of_their_variable() {
        let long = run(3 * LONGEST_KNOWN + 3);
        let env = [
            ("MY_TOKEN", "correcthorse"),
            ("DEPLOY_KEY_2", " spaced-value\n"),
            ("DB_PASSWORD", "quo\"ted\\pass"),
            ("MULTI_SECRET", "-----X-----\nfirst-line-of-it\nb"),
            ("LONG_CREDENTIAL", &long),
            ("NPM_AUTH", "zzz-9-zzz"),
            ("S_KEY", "überlange-Wörter"),
            // None of these is a secret.
            ("SSH_AUTH_SOCK", "/tmp/ssh-x/agent.1"),
            ("KEYBOARD", "pc105-layout"),
            ("MAX_TOKEN", "1234567890"),
            ("A_KEY", "short"),
            ("HOME_PAGE", "not-a-secret"),
        ];
        let masker = Masker::new(env);
        let table = [
            ("a correcthorse, xcorrecthorsex", "a @, x@x"),
            ("MY_TOKEN=correcthorse", "MY_TOKEN=@"),
            ("CorrectHorse", "CorrectHorse"),
            ("spaced-value", "@"),
            ("\"quo\\\"ted\\\\pass\" quo\"ted\\pass", "\"@\" @"),
            ("-----X-----\nfirst-line-of-it\nb", "-----X-----\n@\nb"),
            ("zzz-9-zzz-9-zzz", "@"),
            ("die überlange-Wörter sind", "die @ sind"),
            ("/tmp/ssh-x/agent.1 pc105-layout 1234567890 short not-a-secret", "="),
        ];
        for (text, expected) in table {
            let expected = if expected == "=" { text } else { expected };
            assert_eq!(masker.mask(text), expected.replace('@', "[masked:env]"));
        }
        assert!(!masker.mask(&format!("x {long} y")).contains("gH9jK2"));
        assert!(!format!("{masker:?} {:?}", masker.stream()).contains("correct"));
    }

    #[test]
    fn overlapping_finds_leave_no_rest() {
        let token = format!("gh{}_{}", "p", "x".repeat(36));
        let table = [
            (format!("A_PASSWORD=pre!{token}!post"), "A_PASSWORD=[masked:secret]".to_owned()),
            (format!("A_TOKEN={token}"), "A_TOKEN=[masked:github]".to_owned()),
            (format!("https://x:{token}@host"), "https://x:[masked:github]@host".to_owned()),
            ("A_TOKEN=[masked:nonsense]".to_owned(), "A_TOKEN=[masked:secret]]".to_owned()),
        ];
        for (text, expected) in table {
            assert_eq!(plain().mask(&text), expected);
        }
    }

    #[test]
    fn a_masker_can_be_shared() {
        fn shared<T: Clone + Send + Sync>(_: &T) {}
        shared(&plain());
    }

    #[test]
    fn memory_is_bounded_and_long_lines_are_masked() {
        let masker = plain();
        let secret = format!("gh{}_{}", "p", "y".repeat(36));
        // Without a space nearby only the secret itself keeps the cut from going through it.
        for (shift, border) in (0..50).flat_map(|shift| [(shift, " "), (shift, "(")]) {
            let filler = border.repeat(LIMITS.line - LIMITS.overlap - shift);
            let text = format!("{filler}{secret}{}{secret}", "(lorem ipsum".repeat(20_000));
            let masked = masker.mask(&text);
            assert_eq!(masked.matches("[masked:github]").count(), 2, "{shift}");
            assert!(!masked.contains("yyyy"));
        }
        let (mut stream, mut written) = (masker.stream(), 0);
        for pushed in 1..=3000 {
            written += stream.push(&"q".repeat(1000)).len();
            assert!(pushed * 1000 - written <= 2 * LIMITS.line);
        }
        assert_eq!(written + stream.finish().len(), 3_000_000);
    }

    fn env() -> [(&'static str, &'static str); 2] {
        [("MY_TOKEN", "known-value-1"), ("MY_KEY", "-value-1-more")]
    }

    /// Pieces of text that meet at random: secrets, halves of them, contexts, line ends.
    fn piece() -> impl Strategy<Value = String> {
        let pem = |word: &str| format!("-----{word} RSA {} KEY-----", "PRIVATE");
        let mut all: Vec<String> = secrets().into_iter().map(|(_, secret)| secret).collect();
        all.extend([pem("BEGIN"), pem("END"), pem("BEGIN"), run(64), run(64), run(7)]);
        all.extend([pem("BEGIN") + "\n" + &run(64) + "\n" + &pem("END"), "known-value-1".into()]);
        let glue = [
            "\n",
            "\n",
            "\n",
            "\r\n",
            " ",
            "=",
            ": ",
            "\"",
            "'",
            "\\n",
            "\\\"",
            "\\",
            "-",
            "--",
            "@",
            ":",
            "://",
            "/",
            ",",
            ";",
            "&",
            "[",
            "]",
            "[masked:",
            "[masked:env]",
            "[masked:pem]",
            "API_KEY=",
            "\"db_password\": \"",
            "token: ",
            "Authorization: Bearer ",
            "bearer ",
            "é",
            "→",
            "https://bob:",
            "password=",
            "${X}",
            "<x>",
            "(",
            ")",
            "sk-",
            "ghp_",
            "-more",
            "\x1b[0m",
            "Proc-Type: 4",
            "hunter2hunter2",
            "12345678",
            "plain_words",
            "AbCd12",
            "\t",
            ".",
            "_",
            "$",
        ];
        all.extend(glue.map(str::to_owned));
        prop_oneof![8 => prop::sample::select(all), 1 => "[ -~]{0,30}", 1 => "\\PC{0,8}"]
    }

    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(piece(), 0..24).prop_map(|pieces| pieces.concat())
    }

    fn streamed(masker: &Masker, text: &str, cuts: &[prop::sample::Index]) -> String {
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        at.push(text.len());
        at.iter_mut().for_each(|cut| *cut = text.floor_char_boundary(*cut));
        at.sort_unstable();
        let (mut stream, mut out, mut from) = (masker.stream(), String::new(), 0);
        for cut in at {
            out += &stream.push(&text[from..cut]);
            from = cut;
        }
        out + &stream.finish()
    }

    thread_local! {
        static MASKER: Masker = Masker::new(env());
        /// Cuts lines all the time, to check that a stream cuts them where `mask` does.
        static TINY: Masker = Masker::with_limits(env(), Limits { line: 128, overlap: 48 });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn masking_twice_is_masking_once(text in text()) {
            let masker = MASKER.with(Clone::clone);
            let once = masker.mask(&text).into_owned();
            prop_assert_eq!(masker.mask(&once), once.as_str());
        }

        #[test]
        fn chunks_do_not_matter(
            text in text(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let masker = MASKER.with(Clone::clone);
            prop_assert_eq!(streamed(&masker, &text, &cuts), masker.mask(&text));
        }

        #[test]
        fn chunks_do_not_matter_for_overlong_lines(
            text in text(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let masker = TINY.with(Clone::clone);
            prop_assert_eq!(streamed(&masker, &text, &cuts), masker.mask(&text));
        }

        #[test]
        fn no_shaped_secret_survives(
            before in text(),
            (_, secret) in prop::sample::select(secrets()),
            after in text(),
        ) {
            // Between spaces: next to a letter some of them are not secrets.
            let secret = format!(" {secret} ");
            let text = format!("{before}{secret}{after}");
            let masked = MASKER.with(|masker| masker.mask(&text).into_owned());
            prop_assert!(!masked.contains(&secret), "{}", masked);
        }
    }

    #[test]
    fn chunks_of_one_char_do_not_matter() {
        let text: String = secrets().into_iter().map(|(_, s)| format!("a_key: {s}\n")).collect();
        let (masker, mut out) = (plain(), String::new());
        let mut stream = masker.stream();
        text.chars().for_each(|c| out += &stream.push(c.encode_utf8(&mut [0; 4])));
        out += &stream.finish();
        assert_eq!(out, masker.mask(&text));
    }
}
