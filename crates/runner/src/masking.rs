//! Masks secrets before they reach journal, log or screen: replaces them by `[masked:KIND]`.
//!
//! Three sources define what a secret is: a table of shapes (tokens with a prefix, headers, passwords in URLs, see
//! `token_rules`), the name a value is assigned to (`assignments`), and known values: of environment variables and of clients'
//! settings (`known_values`).
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

mod added_secrets;
mod assignments;
mod known_values;
mod mask_rule;
mod mask_stream;
mod pem_keys;
mod service_tokens;
#[cfg(test)]
mod table_tests;
mod token_rules;

pub(crate) use known_values::find_secret_variables;
pub use known_values::read_client_values;
pub use mask_stream::MaskStream;

/// All rules of the table.
fn all_rules() -> impl Iterator<Item = &'static mask_rule::MaskRule> {
    token_rules::MASK_RULES.iter().chain(service_tokens::SERVICE_RULES)
}

const MASK_START: &str = "[masked:";

/// How much of an overlong line is searched at once, and how much of that is searched again.
#[derive(Clone, Copy)]
struct LineLimits {
    max_line: usize,
    overlap_bytes: usize,
}

const LINE_LIMITS: LineLimits = LineLimits { max_line: 64 * 1024, overlap_bytes: 16 * 1024 };

/// Longer values of the environment are searched for in pieces, which stay far below the overlap.
const MAX_KNOWN_VALUE: usize = 4 * 1024;

/// How much of a known value goes into the trigger automaton: its size should not depend on the values.
const KNOWN_TRIGGER_BYTES: usize = 12;

const MIN_KNOWN_VALUE: usize = 8;

/// Replaces secrets by `[masked:KIND]` (for instance `[masked:github]`).
///
/// Cheap to clone; all clones share the compiled rules.
#[derive(Clone)]
pub struct Masker {
    compiled: Arc<CompiledRules>,
}

struct CompiledRules {
    trigger_automaton: AhoCorasick,
    /// For each trigger the rule it calls, as a bit.
    trigger_bits: Vec<u128>,
    rule_regexes: Vec<Regex>,
    assignments: assignments::AssignmentPatterns,
    known_values: AhoCorasick,
    pem_patterns: pem_keys::PemPatterns,
    line_limits: LineLimits,
}

/// A secret that was found in a line.
struct FoundSecret {
    /// The start of the match including its context.
    context_start: usize,
    secret_range: Range<usize>,
    mask_kind: &'static str,
}

const KNOWN_BIT: u128 = 1 << 127;
const ASSIGNED_BIT: u128 = 1 << 126;

impl Masker {
    /// Compiles the rules. `environment` has the pairs (name, value) of the environment. The name decides which values are
    /// secret; those are masked wherever they occur.
    pub fn new<'a>(environment: impl IntoIterator<Item = (&'a str, &'a str)>) -> Masker {
        Masker::with_limits(environment, LINE_LIMITS)
    }

    fn with_limits<'a>(environment: impl IntoIterator<Item = (&'a str, &'a str)>, line_limits: LineLimits) -> Masker {
        let known_values = known_values::known_patterns(environment);
        let mut literals: Vec<&str> = Vec::new();
        let mut trigger_bits = Vec::new();
        let mut add_trigger = |rule_bit: u128, literal| {
            literals.push(literal);
            trigger_bits.push(rule_bit);
        };
        // The index of a rule is its bit, so a trigger names its rule by position.
        for (rule_index, mask_rule) in all_rules().enumerate() {
            for trigger in mask_rule.triggers {
                add_trigger(1 << rule_index, *trigger);
            }
        }
        for trigger in assignments::NAME_TRIGGERS {
            add_trigger(ASSIGNED_BIT, *trigger);
        }
        // A known value takes part with its first bytes only; the full values are searched for on triggered lines.
        for known_value in &known_values {
            add_trigger(KNOWN_BIT, &known_value[..known_value.floor_char_boundary(KNOWN_TRIGGER_BYTES)]);
        }
        let rule_table = all_rules();
        Masker {
            compiled: Arc::new(CompiledRules {
                trigger_automaton: build_automaton(&literals, AhoCorasickKind::DFA, true),
                trigger_bits,
                rule_regexes: rule_table
                    .map(|table_rule| mask_rule::compile_pattern(table_rule.mask_kind, table_rule.pattern))
                    .collect(),
                assignments: assignments::AssignmentPatterns::new(),
                known_values: build_automaton(&known_values, AhoCorasickKind::ContiguousNFA, false),
                pem_patterns: pem_keys::PemPatterns::new(line_limits.max_line),
                line_limits,
            }),
        }
    }

    /// Masks a complete text. Borrows it if there was nothing to mask.
    #[must_use]
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let pem_patterns = &self.compiled.pem_patterns;
        if !pem_patterns.occurs_in(text) {
            return self.mask_keyless(text);
        }
        let mut text_without_keys = String::with_capacity(text.len());
        // A whole text is the last piece of itself, so nothing is held back.
        pem_keys::collapse_keys(pem_patterns, &mut pem_keys::PemState::default(), text, true, &mut text_without_keys);
        Cow::Owned(self.mask_keyless(&text_without_keys).into_owned())
    }

    /// Returns a masker for text that arrives in pieces.
    #[must_use]
    pub fn new_stream(&self) -> MaskStream {
        MaskStream::new(self.clone())
    }

    /// Runs the second stage on a complete text.
    fn mask_keyless<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut masked_output = String::new();
        let copied_until = self.mask_lines(text, &mut masked_output);
        if copied_until == 0 {
            return Cow::Borrowed(text);
        }
        masked_output.push_str(&text[copied_until..]);
        Cow::Owned(masked_output)
    }

    /// Masks complete lines. Writes up to the last change and returns the position in `text` up to which it wrote.
    fn mask_lines(&self, text: &str, masked_output: &mut String) -> usize {
        let (mut search_start, mut copied_until) = (0, 0);
        while let Some(hit) = self.compiled.trigger_automaton.find(Input::new(text).range(search_start..)) {
            // The whole line around the trigger is searched, since the context of a secret may be anywhere in it.
            let line_start =
                text[search_start..hit.start()].rfind('\n').map_or(search_start, |newline| search_start + newline + 1);
            let line_end = text[hit.end()..].find('\n').map_or(text.len(), |newline| hit.end() + newline);
            if let Some(masked_line) = self.mask_line(&text[line_start..line_end]) {
                masked_output.push_str(&text[copied_until..line_start]);
                masked_output.push_str(&masked_line);
                copied_until = line_end;
            }
            search_start = line_end;
        }
        copied_until
    }

    /// Masks a line of any length, without its line end. Returns `None` if there is nothing to mask.
    fn mask_line(&self, text_line: &str) -> Option<String> {
        if text_line.len() < self.compiled.line_limits.max_line {
            return self.mask_until_stable(text_line);
        }
        let mut masked_output = String::with_capacity(text_line.len());
        let mut remaining = text_line;
        // What is left after a window starts with the overlap, which is searched again.
        while remaining.len() >= self.compiled.line_limits.max_line {
            remaining = &remaining[self.mask_line_start(remaining, &mut masked_output)..];
        }
        match self.mask_until_stable(remaining) {
            Some(masked_end) => masked_output.push_str(&masked_end),
            None => masked_output.push_str(remaining),
        }
        (masked_output != text_line).then_some(masked_output)
    }

    /// Masks the start of an overlong line and returns its length. The result depends on the window only, so that a stream cuts
    /// at the same positions as [`Masker::mask`].
    fn mask_line_start(&self, text_line: &str, masked_output: &mut String) -> usize {
        let LineLimits { max_line, overlap_bytes } = self.compiled.line_limits;
        let line_window = &text_line[..text_line.floor_char_boundary(max_line)];
        let mut cut_position = line_window.floor_char_boundary(line_window.len().saturating_sub(overlap_bytes));
        let cut_window_start = line_window.floor_char_boundary(cut_position.saturating_sub(overlap_bytes / 16));
        // The border of a word is preferred: what follows is searched without what came before.
        if let Some(space) = line_window[cut_window_start..cut_position].rfind([' ', '\t', ',']) {
            cut_position = cut_window_start + space + 1;
        }
        // The cut must not go through a secret, so it moves before any secret that crosses it.
        let mut found_secrets = self.find_secrets(line_window);
        found_secrets.sort_by_key(|found_secret| std::cmp::Reverse(found_secret.context_start));
        for found_secret in &found_secrets {
            if found_secret.context_start < cut_position && cut_position < found_secret.secret_range.end {
                cut_position = found_secret.context_start;
            }
        }
        if cut_position == 0 {
            cut_position = line_window.len(); // a secret reaches from the start beyond the cut: mask the whole window
        }
        match self.mask_until_stable(&line_window[..cut_position]) {
            Some(masked_part) => masked_output.push_str(&masked_part),
            None => masked_output.push_str(&line_window[..cut_position]),
        }
        cut_position
    }

    /// Masks until nothing more is found. This ends, since each round turns text into masks and no round changes a mask.
    fn mask_until_stable(&self, text_line: &str) -> Option<String> {
        let mut masked_line = self.mask_once(text_line)?;
        while let Some(masked_again) = self.mask_once(&masked_line) {
            masked_line = masked_again;
        }
        Some(masked_line)
    }

    fn mask_once(&self, text_line: &str) -> Option<String> {
        let found_secrets = merge_overlapping(self.find_secrets(text_line));
        if found_secrets.is_empty() {
            return None;
        }
        // Parts that are masks already stay, so that masking masked text changes nothing.
        let unmasked_ranges = exclude_masks(found_secrets, &find_masks(text_line));
        let mut masked_output = String::with_capacity(text_line.len());
        let mut copied_until = 0;
        for (range, mask_kind) in &unmasked_ranges {
            masked_output.push_str(&text_line[copied_until..range.start]);
            masked_output.push_str(MASK_START);
            masked_output.push_str(mask_kind);
            masked_output.push(']');
            copied_until = range.end;
        }
        masked_output.push_str(&text_line[copied_until..]);
        (!unmasked_ranges.is_empty()).then_some(masked_output)
    }

    fn find_secrets(&self, text_line: &str) -> Vec<FoundSecret> {
        let compiled = &*self.compiled;
        let mut found_secrets = Vec::new();
        let trigger_hits = compiled.trigger_automaton.find_overlapping_iter(text_line);
        // One pass over the line collects the rules that could match at all.
        let called_bits = trigger_hits.fold(0, |collected_bits, trigger_hit| {
            collected_bits | compiled.trigger_bits[trigger_hit.pattern().as_usize()]
        });
        if called_bits & KNOWN_BIT != 0 {
            found_secrets.extend(compiled.known_values.find_overlapping_iter(text_line).map(|value_hit| FoundSecret {
                context_start: value_hit.start(),
                secret_range: value_hit.range(),
                mask_kind: mask_rule::ENVIRONMENT_KIND,
            }));
        }
        for (rule_index, rule) in all_rules().enumerate() {
            if called_bits & (1 << rule_index) == 0 {
                continue;
            }
            for captures in compiled.rule_regexes[rule_index].captures_iter(text_line) {
                let (Some(full_match), Some(secret_match)) = (captures.get(0), captures.get(1)) else {
                    continue;
                };
                // Group 1 is the secret; the rest of the match is context that stays visible.
                if (rule.accepts_secret)(secret_match.as_str()) {
                    found_secrets.push(FoundSecret {
                        context_start: full_match.start(),
                        secret_range: secret_match.range(),
                        mask_kind: rule.mask_kind,
                    });
                }
            }
        }
        if called_bits & ASSIGNED_BIT != 0 {
            compiled.assignments.find_assigned_secrets(text_line, |context_start, secret_range| {
                found_secrets.push(FoundSecret { context_start, secret_range, mask_kind: mask_rule::ASSIGNED_KIND });
            });
        }
        found_secrets
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
fn merge_overlapping(mut found_secrets: Vec<FoundSecret>) -> Vec<FoundSecret> {
    found_secrets.sort_by_key(|found_secret| found_secret.secret_range.start);
    let mut merged_secrets: Vec<FoundSecret> = Vec::with_capacity(found_secrets.len());
    let mut longest_length = 0;
    for found_secret in found_secrets {
        let secret_length = found_secret.secret_range.len();
        match merged_secrets.last_mut() {
            Some(last_merged) if found_secret.secret_range.start < last_merged.secret_range.end => {
                last_merged.secret_range.end = last_merged.secret_range.end.max(found_secret.secret_range.end);
                if secret_length > longest_length {
                    (last_merged.mask_kind, longest_length) = (found_secret.mask_kind, secret_length);
                }
            }
            _ => {
                longest_length = secret_length;
                merged_secrets.push(found_secret);
            }
        }
    }
    merged_secrets
}

/// Whether this module writes a mask of this kind; other bracketed text is not taken for a mask.
fn is_mask_kind(mask_kind: &str) -> bool {
    [mask_rule::ENVIRONMENT_KIND, mask_rule::PEM_KIND, mask_rule::ASSIGNED_KIND].contains(&mask_kind)
        || all_rules().any(|rule| rule.mask_kind == mask_kind)
}

/// Finds the masks that a line already has.
fn find_masks(text_line: &str) -> Vec<Range<usize>> {
    let mask_starts = text_line.match_indices(MASK_START).map(|(mask_start, _)| mask_start);
    let mask_range = |mask_start: usize| {
        let kind_start = mask_start + MASK_START.len();
        // No kind is longer, so the search for the bracket is bounded.
        let kind_end = kind_start + text_line[kind_start..].bytes().take(24).position(|byte| byte == b']')?;
        is_mask_kind(&text_line[kind_start..kind_end]).then_some(mask_start..kind_end + 1)
    };
    mask_starts.filter_map(mask_range).collect()
}

/// Returns the ranges of the secrets that are not masked yet.
fn exclude_masks(found_secrets: Vec<FoundSecret>, mask_ranges: &[Range<usize>]) -> Vec<(Range<usize>, &'static str)> {
    let mut unmasked_ranges = Vec::with_capacity(found_secrets.len());
    for FoundSecret { secret_range, mask_kind, .. } in found_secrets {
        let mut piece_start = secret_range.start;
        let first_inside = mask_ranges.partition_point(|mask_range| mask_range.end <= piece_start);
        let later_masks = mask_ranges[first_inside..].iter();
        for mask_range in later_masks.take_while(|mask_range| mask_range.start < secret_range.end) {
            if piece_start < mask_range.start {
                unmasked_ranges.push((piece_start..mask_range.start, mask_kind));
            }
            piece_start = mask_range.end;
        }
        if piece_start < secret_range.end {
            unmasked_ranges.push((piece_start..secret_range.end, mask_kind));
        }
    }
    unmasked_ranges
}

fn build_automaton<P: AsRef<[u8]>>(patterns: &[P], automaton_kind: AhoCorasickKind, ignore_case: bool) -> AhoCorasick {
    let mut builder = AhoCorasick::builder();
    builder.match_kind(MatchKind::Standard);
    builder.kind(Some(automaton_kind)).ascii_case_insensitive(ignore_case);
    match builder.build(patterns) {
        Ok(automaton) => automaton,
        // This happens only beyond two billion states.
        Err(error) => unreachable!("automaton: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Looks random, but is not.
    fn token_text(len: usize) -> String {
        "aB3dE6gH9jK2mN5pQ8sT1vW4xY7z".chars().cycle().take(len).collect()
    }

    fn hex_text(len: usize) -> String {
        "0a1b2c3d4e5f6789".chars().cycle().take(len).collect()
    }

    fn plain_masker() -> Masker {
        Masker::new([])
    }

    /// Secrets with their kinds, assembled here so that no scanner takes this file for a leak.
    fn sample_secrets() -> Vec<(&'static str, String)> {
        let mut all = vec![
            ("anthropic", format!("sk-{}-api03-{}", "ant", token_text(95))),
            ("openai", format!("sk-{}", token_text(48))),
            ("openai", format!("sk-{}-{}_{}", "proj", token_text(60), token_text(40))),
            ("openrouter", format!("sk-{}-v1-{}", "or", hex_text(64))),
            ("xai", format!("xa{}-{}", "i", token_text(80))),
            ("groq", format!("gs{}_{}", "k", token_text(52))),
            ("perplexity", format!("ppl{}-{}", "x", token_text(48))),
            ("replicate", format!("r{}_{}", 8, token_text(37))),
            ("google", format!("AI{}{}", "za", token_text(35))),
            ("google-oauth", format!("ya{}.{}", 29, token_text(120))),
            ("google-oauth", format!("GOC{}-{}", "SPX", token_text(28))),
            ("aws", format!("AK{}{}", "IA", "Q7".repeat(8))),
            ("aws", format!("AS{}{}", "IA", "Q7".repeat(8))),
            ("github", format!("github_{}_{}_{}", "pat", token_text(22), token_text(59))),
            ("gitlab", format!("gl{}-{}", "pat", token_text(20))),
            ("slack", format!("xo{}-{}-{}-{}", "xb", "1234567890", "1234567890", token_text(24))),
            ("slack", format!("xap{}-1-A012-{}-{}", "p", "1234567890", hex_text(64))),
            ("stripe", format!("sk_{}_{}", "live", token_text(24))),
            ("stripe", format!("rk_{}_{}", "live", token_text(24))),
            ("stripe", format!("sk_{}_{}", "test", token_text(24))),
            ("npm", format!("np{}_{}", "m", token_text(36))),
            ("pypi", format!("py{}-Ag{}{}", "pi", "EI", token_text(150))),
            ("huggingface", format!("h{}_{}", "f", token_text(34))),
            ("sendgrid", format!("S{}.{}.{}", "G", token_text(22), token_text(43))),
            ("digitalocean", format!("do{}_v1_{}", "p", hex_text(64))),
            ("docker", format!("dc{}_pat_{}", "kr", token_text(27))),
            ("shopify", format!("shp{}_{}", "at", hex_text(32))),
            ("vault", format!("hv{}.{}", "s", token_text(90))),
            ("atlassian", format!("AT{}3{}", "ATT", token_text(180))),
            ("age", format!("AGE-{}-KEY-1{}", "SECRET", "Q7".repeat(29))),
            ("telegram", format!("{}:A{}{}", "123456789", "A", token_text(33))),
            ("jwt", format!("ey{}.ey{}.{}", "JhbGciOi", "JzdWIiOi", token_text(43))),
            ("jwt", format!("ey{}..{}.{}.{}", "JhbGciOi", token_text(16), token_text(80), token_text(22))),
        ];
        for letter in ["p", "o", "u", "s", "r"] {
            all.push(("github", format!("gh{letter}_{}", "x".repeat(36))));
        }
        all
    }

    #[test]
    fn tokens_with_a_shape_are_masked_wherever_they_stand() {
        let masker = plain_masker();
        for (kind, secret) in sample_secrets() {
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
        let twilio = format!("S{}{}", "K", hex_text(32));
        let (short, key) = (token_text(12), token_text(40));
        let hook = format!("hooks.slack{}", ".com/services/");
        let table: Vec<(String, String, &str)> = vec![
            (format!("https://{hook}"), format!("T01/B02/{}", token_text(24)), "slack"),
            ("AccountSid: ".into(), twilio.clone(), "twilio"),
            ("\"sid\": \"".into(), twilio, "twilio"),
            ("aws_secret_access_key = ".into(), key.clone(), "aws-secret"),
            ("AWS_SECRET_ACCESS_KEY=".into(), key.clone(), "aws-secret"),
            ("\"SecretAccessKey\": \"".into(), key.clone(), "aws-secret"),
            ("Authorization: Bearer ".into(), short.clone(), "auth"),
            ("authorization: basic ".into(), format!("{}==", token_text(22)), "auth"),
            ("-H 'Authorization: token ".into(), key.clone(), "auth"),
            (r#"\"Authorization\": \"Bearer "#.into(), key.clone(), "auth"),
            ("set(\"Authorization\", \"Bearer ".into(), key.clone(), "auth"),
            ("sent as bearer ".into(), key.clone(), "auth"),
            ("Authorization: ".into(), key.clone(), "auth"),
            ("https://api.telegram.org/bot".into(), format!("123456789:{}", token_text(35)), "telegram"),
            (format!("ok\n{}\n", pem("BEGIN")), key.clone(), "pem"),
            ("MY_API_KEY=".into(), short.clone(), "secret"),
            ("export X_SECRET=\"".into(), short.clone(), "secret"),
            ("db_password: ".into(), short.clone(), "secret"),
            ("{\"service_key\": \"".into(), short.clone(), "secret"),
            ("{\\\"auth_token\\\":\\\"".into(), short.clone(), "secret"),
            ("GITHUB_TOKEN=".into(), sample_secrets()[33].1.clone(), "github"),
        ];
        let masker = plain_masker();
        for (before, secret, kind) in table {
            let text = format!("{before}{secret}");
            // The line end after the first line of a key stays.
            let (kept, line_end) = if kind == "pem" { ("ok\n", "\n") } else { (before.as_str(), "") };
            assert_eq!(masker.mask(&text), format!("{kept}[masked:{kind}]{line_end}"), "{text}");
        }
    }

    #[test]
    fn only_the_password_of_a_url_is_masked() {
        let table = [
            ("postgres://user:@host/db", "hunter2"),
            ("redis://:@127.0.0.1:6379", "p@ss:w0rd"),
            ("git clone https://bob:@example.org/x.git && ls", "pw"),
            ("amqp://guest:@mq, http://host:80/x@y", "x#y"),
        ];
        for (frame, password) in table {
            let text = frame.replacen(":@", &format!(":{password}@"), 1);
            let expected = frame.replacen(":@", ":[masked:url]@", 1);
            assert_eq!(plain_masker().mask(&text), expected);
        }
    }

    #[test]
    fn harmless_text_is_left_and_borrowed() {
        let (content_hash, sum) = (hex_text(40), hex_text(64));
        let own = [
            format!("commit {content_hash}"),
            format!("index {}..{}", hex_text(7), hex_text(9)),
            format!("sha256:{sum} done"),
            format!("Cargo.lock checksum = \"{sum}\""),
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
        let masker = plain_masker();
        for text in own.iter().map(String::as_str).chain(fixed) {
            let masked_text = masker.mask(text);
            assert!(matches!(masked_text, Cow::Borrowed(_)), "{text:?} gave {masked_text:?}");
        }
    }

    #[test]
    fn known_values_are_masked_by_the_name_of_their_variable() {
        let long = token_text(3 * MAX_KNOWN_VALUE + 3);
        let environment = [
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
        let masker = Masker::new(environment);
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
        assert!(!format!("{masker:?} {:?}", masker.new_stream()).contains("correct"));
    }

    #[test]
    fn overlapping_secrets_are_masked_completely() {
        let token = format!("gh{}_{}", "p", "x".repeat(36));
        let table = [
            (format!("A_PASSWORD=pre!{token}!post"), "A_PASSWORD=[masked:secret]".to_owned()),
            (format!("A_TOKEN={token}"), "A_TOKEN=[masked:github]".to_owned()),
            (format!("https://x:{token}@host"), "https://x:[masked:github]@host".to_owned()),
            ("A_TOKEN=[masked:nonsense]".to_owned(), "A_TOKEN=[masked:secret]]".to_owned()),
        ];
        for (text, expected) in table {
            assert_eq!(plain_masker().mask(&text), expected);
        }
    }

    #[test]
    fn a_masker_can_be_shared() {
        fn shared<T: Clone + Send + Sync>(_: &T) {}
        shared(&plain_masker());
    }

    #[test]
    fn memory_is_bounded_and_long_lines_are_masked() {
        let masker = plain_masker();
        let secret = format!("gh{}_{}", "p", "y".repeat(36));
        // Without a space nearby only the secret itself keeps the cut from going through it.
        for (shift, border) in (0..50).flat_map(|shift| [(shift, " "), (shift, "(")]) {
            let filler = border.repeat(LINE_LIMITS.max_line - LINE_LIMITS.overlap_bytes - shift);
            let text = format!("{filler}{secret}{}{secret}", "(lorem ipsum".repeat(20_000));
            let masked_text = masker.mask(&text);
            assert_eq!(masked_text.matches("[masked:github]").count(), 2, "{shift}");
            assert!(!masked_text.contains("yyyy"));
        }
        let (mut stream, mut written) = (masker.new_stream(), 0);
        for pushed in 1..=3000 {
            written += stream.push_chunk(&"q".repeat(1000)).len();
            assert!(pushed * 1000 - written <= 2 * LINE_LIMITS.max_line);
        }
        assert_eq!(written + stream.finish_text().len(), 3_000_000);
    }

    fn test_environment() -> [(&'static str, &'static str); 2] {
        [("MY_TOKEN", "known-value-1"), ("MY_KEY", "-value-1-more")]
    }

    /// Pieces of text that meet at random: secrets, halves of them, contexts, line ends.
    fn random_piece() -> impl Strategy<Value = String> {
        let pem = |word: &str| format!("-----{word} RSA {} KEY-----", "PRIVATE");
        let mut all: Vec<String> = sample_secrets().into_iter().map(|(_, secret)| secret).collect();
        all.extend([pem("BEGIN"), pem("END"), pem("BEGIN"), token_text(64), token_text(64), token_text(7)]);
        all.extend([pem("BEGIN") + "\n" + &token_text(64) + "\n" + &pem("END"), "known-value-1".into()]);
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

    fn random_text() -> impl Strategy<Value = String> {
        prop::collection::vec(random_piece(), 0..24).prop_map(|pieces| pieces.concat())
    }

    fn mask_in_chunks(masker: &Masker, text: &str, cuts: &[prop::sample::Index]) -> String {
        let mut cut_positions: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cut_positions.push(text.len());
        cut_positions.iter_mut().for_each(|cut| *cut = text.floor_char_boundary(*cut));
        cut_positions.sort_unstable();
        let (mut stream, mut masked_output, mut from) = (masker.new_stream(), String::new(), 0);
        for cut in cut_positions {
            masked_output += &stream.push_chunk(&text[from..cut]);
            from = cut;
        }
        masked_output + &stream.finish_text()
    }

    thread_local! {
        static MASKER: Masker = Masker::new(test_environment());
        /// Cuts lines all the time, to check that a stream cuts them where `mask` does.
        static TINY: Masker = Masker::with_limits(test_environment(), LineLimits { max_line: 128, overlap_bytes: 48 });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn masking_twice_is_masking_once(text in random_text()) {
            let masker = MASKER.with(Clone::clone);
            let once = masker.mask(&text).into_owned();
            prop_assert_eq!(masker.mask(&once), once.as_str());
        }

        #[test]
        fn chunks_do_not_matter(
            text in random_text(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let masker = MASKER.with(Clone::clone);
            prop_assert_eq!(mask_in_chunks(&masker, &text, &cuts), masker.mask(&text));
        }

        #[test]
        fn chunks_do_not_matter_for_overlong_lines(
            text in random_text(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let masker = TINY.with(Clone::clone);
            prop_assert_eq!(mask_in_chunks(&masker, &text, &cuts), masker.mask(&text));
        }

        #[test]
        fn no_shaped_secret_survives(
            before in random_text(),
            (_, secret) in prop::sample::select(sample_secrets()),
            after in random_text(),
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
        let text: String = sample_secrets().into_iter().map(|(_, secret)| format!("a_key: {secret}\n")).collect();
        let (masker, mut masked_output) = (plain_masker(), String::new());
        let mut stream = masker.new_stream();
        text.chars().for_each(|character| masked_output += &stream.push_chunk(character.encode_utf8(&mut [0; 4])));
        masked_output += &stream.finish_text();
        assert_eq!(masked_output, masker.mask(&text));
    }
}
