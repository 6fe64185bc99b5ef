//! Secrets without a shape of their own, found by the name they are assigned to.
//!
//! `NAME=value`, `name: value`, `"name": "value"` (also with escaped quotes), `name => value`, `name := value` and
//! `const NAME: &str = "value"`. The name decides whether to look, the value whether it is masked: references, placeholders,
//! numbers, paths, identifiers and, outside quotes, calls and type names are left, since agents print much source code.

use std::ops::Range;

use regex::Regex;

use super::mask_rule::compile_pattern;

/// A longer quoted value is taken for text with an unbalanced quote.
const MAX_QUOTED_VALUE: usize = 8 * 1024;

const MIN_SECRET_BYTES: usize = 8;

pub(super) const NAME_TRIGGERS: &[&str] =
    &["key", "secret", "token", "passw", "passphrase", "pwd", "credential", "auth"];

/// What may precede an expression.
macro_rules! lead {
    () => {
        r"^[&*!$(\[{|]*"
    };
}

const ASSIGNMENT_PATTERNS: &[(&str, &str)] = &[
    (
        "assignment",
        concat!(
            r"((?i-u:key|secret|token|password|passwd|passphrase|pwd|credentials?|auth))",
            r#"(?i-u:_base|[_-]?[0-9]{1,2})?\\*["'`]?\]?"#,
            r"(?:[ \t]*:[ \t]*(?:&(?:'static )?str|[Ss]tring|str)[ \t]*=|[ \t]*(=>|:=|=|:))[ \t]*"
        ),
    ),
    (
        "reference",
        concat!(
            r"^\$(?:env:)?[A-Za-z_][A-Za-z0-9_]*$|^\{[A-Za-z_][A-Za-z0-9_.:?!|]*\}?$|^%[A-Za-z_]+%$",
            r"|[$#]\{[^}]*\}*|\$\([^)]*\)?|\{\{[^}]*\}*"
        ),
    ),
    (
        "code",
        concat!(
            lead!(),
            // `obj.field`, `module::NAME`; digits only as in `dot2_token`, since tokens contain dots, too.
            r"(?:(?:::)?[A-Za-z_]+(?:(?:\.|::|->|\?\.)(?:[A-Za-z_]+|[a-z_]+[0-9][a-z_]*))+(?:\?|::)?$",
            // The same followed by a call, an index, a type argument or a macro.
            r"|(?:::)?[A-Za-z_][A-Za-z0-9_]*(?:(?:\.|::|->|\?\.)[A-Za-z_][A-Za-z0-9_]*)+(?:::)?[(\[<{!?]",
            r"|(?:[A-Za-z_]+|[a-z0-9]+(?:_[a-z0-9]+)+)(?:!?[(\[{]|<)",
            // `AccessToken`, `accessToken`, `ACCESS_TOKEN`: names, not generated values.
            r"|(?:[a-z_]+|[A-Z]{1,4}[a-z]+)(?:[A-Z]{1,3}[a-z]+)*[?|]?$",
            r"|[A-Z]{1,12}$|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$)",
            // `512u32`, `0x4000_0000`.
            r"|^(?:0x[0-9A-Fa-f_]{1,16}|[0-9_]+)(?:[ui](?:8|16|32|64|128|size))?$"
        ),
    ),
    (
        "stand-in",
        concat!(
            r"^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)$",
            r"|^[\[<(*]*(?i-u:redacted|masked|hidden|filtered)[\])>*]*$",
            // An address; one with a password or a query may contain a secret.
            r"|^https?://[^@?]*$"
        ),
    ),
];

/// Words before `key` that make it no secret, but an index or a public key.
const HARMLESS_KEYS: &[&str] = &["public", "primary", "foreign", "cache", "sort", "partition", "pub"];

/// Words that may precede `key` or `token` without a border between them.
const GLUED_PREFIXES: &[&str] = &[
    "api",
    "access",
    "auth",
    "secret",
    "private",
    "refresh",
    "session",
    "client",
    "app",
    "signing",
    "master",
    "encryption",
    "bearer",
];

/// The compiled patterns.
pub(super) struct AssignmentPatterns {
    assignment_head: Regex,
    reference: Regex,
    code: Regex,
    stand_in: Regex,
}

/// What is known about the place of a value.
struct ValuePlace {
    is_quoted: bool,
    /// `NAME=value` as a shell writes it: the value is data, never code.
    is_shell: bool,
    is_password: bool,
}

impl AssignmentPatterns {
    pub(super) fn new() -> AssignmentPatterns {
        let [assignment_head, reference, code, stand_in] = [0, 1, 2, 3]
            .map(|index: usize| compile_pattern(ASSIGNMENT_PATTERNS[index].0, ASSIGNMENT_PATTERNS[index].1));
        AssignmentPatterns { assignment_head, reference, code, stand_in }
    }

    /// Calls `on_secret` with the start of the name and the range of each value to mask.
    pub(super) fn find_assigned_secrets(&self, text_line: &str, mut on_secret: impl FnMut(usize, Range<usize>)) {
        let mut search_start = 0;
        // The pattern only finds candidates; name, separator and value each may still rule one out.
        while let Some(captures) = self.assignment_head.captures_at(text_line, search_start) {
            let (Some(full_match), Some(name_word)) = (captures.get(0), captures.get(1)) else {
                return;
            };
            search_start = full_match.end();
            let separator = captures.get(2).map_or("=", |separator_match| separator_match.as_str());
            let after_separator = captures.get(2).map_or(full_match.end(), |separator_match| separator_match.end());
            let next_byte = text_line.as_bytes().get(after_separator);
            if matches!(next_byte, Some(b'=' | b'~' | b':')) || text_line[after_separator..].starts_with("//") {
                continue; // a comparison, a path `a::b`, a scheme
            }
            let name_position = find_name_start(text_line, name_word.start());
            if text_line[..name_position].ends_with("${") {
                continue; // `${TOKEN:-default}`
            }
            if !is_secret_name(&text_line[name_position..name_word.start()], name_word.as_str(), separator) {
                continue;
            }
            // A shell allows no space around the equals sign, and its variables are upper case by convention.
            let is_shell = after_separator == full_match.end()
                && separator == "="
                && name_word.as_str().bytes().all(|byte| byte.is_ascii_uppercase());
            let (secret_range, is_quoted) = find_value_range(text_line, full_match.end());
            let value_place = ValuePlace {
                is_quoted,
                is_shell,
                is_password: name_word.as_str().as_bytes()[0].eq_ignore_ascii_case(&b'p'),
            };
            if is_header_name(&text_line[secret_range.clone()]) {
                continue; // `api_key: X-API-Key: VALUE`, where the name of a header comes first
            }
            if !self.is_harmless(&text_line[secret_range.clone()], &value_place) {
                // The search continues after the value, which may contain words that look like a name.
                search_start = secret_range.end;
                on_secret(name_position, secret_range);
            }
        }
    }

    fn is_harmless(&self, value: &str, value_place: &ValuePlace) -> bool {
        let value_bytes = value.as_bytes();
        if value.len() < MIN_SECRET_BYTES || is_number(value) || is_path(value) {
            return true;
        }
        // Plain lower-case identifiers are variables or words; generated secrets have digits or capitals.
        if value_bytes.iter().all(|byte| *byte == b'_' || byte.is_ascii_lowercase())
            || value_bytes.iter().all(u8::is_ascii_punctuation)
            || self.stand_in.is_match(value)
        {
            return true;
        }
        // Placeholders such as `<your key>` and special tokens such as `<|end|>`.
        if value_bytes[0] == b'<' && (value_bytes[1] == b'|' || value_bytes[1].is_ascii_alphabetic()) {
            return true;
        }
        // What remains without references decides: `prefix-${TOKEN}` contains no secret itself.
        if self.reference.replace_all(value, "").len() < MIN_SECRET_BYTES {
            return true;
        }
        if value_place.is_quoted {
            // The quote was a closing one (`"token:", 12`), or the value is a sentence.
            let is_after_quote = matches!(value_bytes[0], b' ' | b',' | b')' | b']' | b'}' | b':' | b'+');
            let is_sentence =
                !value_place.is_password && value.contains(' ') && !value_bytes.iter().any(u8::is_ascii_digit);
            return is_after_quote || is_sentence;
        }
        !value_place.is_shell && self.code.is_match(value)
    }
}

/// Whether a value is a name with a colon, before another value.
fn is_header_name(value: &str) -> bool {
    value.strip_suffix(':').is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_'))
    })
}

/// Walks back over the rest of the name. The walk is bounded, so that a long run is not walked again and again.
fn find_name_start(text_line: &str, word_start: usize) -> usize {
    let line_bytes = text_line.as_bytes();
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let preceding_bytes = line_bytes[..word_start].iter().rev().take(64);
    let mut name_start_position = word_start - preceding_bytes.take_while(|byte| is_name_byte(**byte)).count();
    // The letter of an escaped line end (`\nAPI_KEY=`) is not part of the name.
    if name_start_position < word_start
        && name_start_position > 0
        && line_bytes[name_start_position - 1] == b'\\'
        && b"nrt".contains(&line_bytes[name_start_position])
    {
        name_start_position += 1;
    }
    name_start_position
}

/// Whether a name denotes a secret; `prefix` is the name up to `name_word`, the word before the separator.
fn is_secret_name(prefix: &str, name_word: &str, separator: &str) -> bool {
    let is_one_of = |options: &[&str]| options.iter().any(|option| name_word.eq_ignore_ascii_case(option));
    // A camel-case border such as `apiKey` has no separator character.
    let last_byte = prefix.bytes().last();
    let is_camel_border = last_byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && name_word.as_bytes()[0].is_ascii_uppercase()
        && !name_word.bytes().all(|byte| byte.is_ascii_uppercase());
    let has_border = is_camel_border || !last_byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let lower_prefix = prefix.to_ascii_lowercase();
    let is_glued = GLUED_PREFIXES.iter().any(|glued_prefix| lower_prefix.ends_with(glued_prefix));
    let stem = lower_prefix.trim_end_matches(['_', '-', '.']);
    // `key` alone is an index far more often than a secret, so it needs a telling prefix.
    if is_one_of(&["key"]) {
        let is_harmless_key = HARMLESS_KEYS.iter().any(|harmless_key| stem.ends_with(harmless_key));
        return (has_border || is_glued) && !stem.is_empty() && !is_harmless_key;
    }
    if is_one_of(&["token"]) {
        return has_border || is_glued;
    }
    if is_one_of(&["credential", "credentials"]) {
        return has_border && !stem.is_empty();
    }
    // `_auth=` is the form of npm's configuration; `auth` alone usually is not a secret.
    if is_one_of(&["auth"]) {
        return last_byte == Some(b'_') && separator == "=";
    }
    // `PGPASSWORD`, `clientsecret`: these words are telling enough to be glued to anything.
    has_border || !is_one_of(&["pwd"])
}

/// Returns the range of the value that starts at `value_start`, and whether it is quoted.
fn find_value_range(text_line: &str, value_start: usize) -> (Range<usize>, bool) {
    let line_bytes = text_line.as_bytes();
    let skip_bytes = |run_start: usize, byte_set: &[u8], max_count: usize| {
        let following = line_bytes[run_start..].iter().take(max_count);
        run_start + following.take_while(|byte| byte_set.contains(byte)).count()
    };
    // String prefixes of programming languages: b"", f"", r#""#.
    let quote_after = |run_start: usize| {
        let quote_position = skip_bytes(run_start, b"\\", 8);
        matches!(line_bytes.get(quote_position), Some(b'"' | b'\'' | b'`'))
            .then_some((quote_position, quote_position - run_start))
    };
    let after_prefix = skip_bytes(skip_bytes(value_start, b"bfruBFRU", 2), b"#", 4);
    if let Some((quote_position, slash_count)) = quote_after(value_start).or_else(|| quote_after(after_prefix)) {
        let start = quote_position + 1;
        return match find_closing_quote(&line_bytes[start..], line_bytes[quote_position], slash_count) {
            Some(value_length) => (start..start + value_length, true),
            // Without a closing quote the value ends like an unquoted one.
            None => (start..find_unquoted_end(text_line, start), true),
        };
    }
    (value_start..find_unquoted_end(text_line, value_start), false)
}

/// Returns the length of a value up to its closing quote, which is not escaped more deeply than the opening one.
fn find_closing_quote(value_bytes: &[u8], quote_byte: u8, opening_slashes: usize) -> Option<usize> {
    let mut slash_run = 0;
    for (position, byte) in value_bytes.iter().enumerate().take(MAX_QUOTED_VALUE) {
        if *byte == b'\\' {
            slash_run += 1;
            continue;
        }
        // In an escaped string the closing quote has as many backslashes as the opening one, or fewer.
        let is_closing = if opening_slashes == 0 { slash_run % 2 == 0 } else { slash_run <= opening_slashes };
        if *byte == quote_byte && is_closing {
            return Some(position - if opening_slashes == 0 { 0 } else { slash_run });
        }
        slash_run = 0;
    }
    None
}

fn find_unquoted_end(text_line: &str, value_start: usize) -> usize {
    let line_bytes = text_line.as_bytes();
    let mut value_end = value_start;
    while let Some(byte) = line_bytes.get(value_end) {
        let next_byte = line_bytes.get(value_end + 1).copied().unwrap_or(b' ');
        let is_end = match byte {
            b'"' | b'\'' | b'`' | 0..=b' ' | 0x7f => true,
            b'\\' => b"nrtu\"'`\\".contains(&next_byte),
            // `a=1&b=2`, `a=1;b=2`: only where another pair follows, since a password may contain these.
            b'&' | b';' | b',' => is_pair_start(&line_bytes[value_end + 1..]),
            _ => false,
        };
        if is_end {
            break;
        }
        value_end += 1;
    }
    // Punctuation at the end belongs to the text around the value.
    let value = text_line[value_start..value_end].trim_end_matches([',', ';', ')', '}', ']', '.']);
    value_start + value.len()
}

fn is_pair_start(following: &[u8]) -> bool {
    let is_name_byte = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let name_length = following.iter().take(40).take_while(|byte| is_name_byte(byte)).count();
    name_length > 0 && !following[0].is_ascii_digit() && matches!(following.get(name_length), Some(b'=' | b':'))
}

/// Whether it is a number, also a date, a version or a time.
pub(super) fn is_number(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_digit() || b".,:_+-".contains(&byte))
}

/// Whether it is a file path. Base64 may start with `/` too, so the first part has to look like a directory name.
pub(super) fn is_path(value: &str) -> bool {
    let value_bytes = value.as_bytes();
    let is_drive_path = value_bytes.len() > 2
        && value_bytes[0].is_ascii_alphabetic()
        && value_bytes[1] == b':'
        && matches!(value_bytes[2], b'/' | b'\\');
    if is_drive_path || ["./", "../", "~/"].iter().any(|prefix| value.starts_with(prefix)) {
        return true;
    }
    let Some(after_slash) = value.strip_prefix('/') else {
        return false;
    };
    let first_part = after_slash.split('/').next().unwrap_or_default();
    let after_capital = first_part.strip_prefix(|character: char| character.is_ascii_uppercase()).unwrap_or(first_part);
    let is_directory_byte = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    !first_part.is_empty() && first_part.len() <= 32 && after_capital.bytes().all(is_directory_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked_values(line: &str) -> Vec<String> {
        let mut found = Vec::new();
        AssignmentPatterns::new().find_assigned_secrets(line, |_, range| found.push(line[range].to_owned()));
        found
    }

    #[test]
    fn every_pattern_compiles() {
        for (name, pattern) in ASSIGNMENT_PATTERNS {
            assert!(Regex::new(pattern).is_ok(), "{name}");
        }
    }

    #[test]
    fn the_value_ends_where_it_should() {
        let table: &[(&str, &str)] = &[
            ("A_KEY=ab12!cd34", "ab12!cd34"),
            ("A_KEY=ab12!cd34)", "ab12!cd34"),
            ("a_key: ab12!cd34, b: 2", "ab12!cd34"),
            ("?api_key=ab12cd34&user=bob", "ab12cd34"),
            ("Password=ab12cd34;Server=db", "ab12cd34"),
            ("DB_PASSWORD=ab;12,cd&34", "ab;12,cd&34"),
            (r#"{"a_key":"ab\"12cd34","b":1}"#, r#"ab\"12cd34"#),
            (r#"{\"a_key\": \"ab12cd34\"}"#, "ab12cd34"),
            (r#""A_KEY=ab12cd34\nB=1""#, "ab12cd34"),
            (r"x\nA_KEY=ab(12)cd34", "ab(12)cd34"),
            ("password: 'correct horse battery'", "correct horse battery"),
            ("a_key = b\"ab12cd34\"", "ab12cd34"),
            ("const A_KEY: &str = \"ab12cd34\";", "ab12cd34"),
            ("config[\"api_key\"] = \"ab12cd34\"", "ab12cd34"),
            ("a_key: \"ab12cd34 and no end", "ab12cd34"),
            ("apiKey: 'ab12cd34'", "ab12cd34"),
            ("apikey=ab12cd34", "ab12cd34"),
            ("PGPASSWORD=ab12cd34 psql", "ab12cd34"),
            ("x-api-key: ab12cd34", "ab12cd34"),
            ("API_KEY_2=ab12cd34", "ab12cd34"),
            ("//registry/:_auth=ab12cd34==", "ab12cd34=="),
            ("A_TOKEN=é12345678", "é12345678"),
        ];
        for (line, value) in table {
            assert_eq!(masked_values(line), [*value], "{line}");
        }
    }

    #[test]
    fn source_code_is_left() {
        let table = [
            "let token = lexer.next_token();",
            "token: Option<String>,",
            "token: CancellationToken,",
            "api_key: &'a str,",
            "apiKey: process.env.OPENAI_API_KEY,",
            "api_key = os.environ[\"OPENAI_API_KEY\"]",
            "self.api_key = self.settings.api_key",
            "password = getpass.getpass(\"Password: \")",
            "if token == expected_2 {",
            "Token::Password => write!(f, \"x\"),",
            "env_key = \"OPENAI_API_KEY\"",
            "secret = base64.b64decode(x)",
            "API_KEY=${OPENAI_API_KEY:-none}",
            "API_KEY=$OPENAI_KEY_2",
            "API_KEY=$(cat /run/x)",
            "token: ${{ secrets.GITHUB_TOKEN }}",
            "api_key: <your-api-key-1>",
            "api_key: \"{{ vault.key1 }}\"",
            "\"api_key\": \"The key of the service\"",
            "print(\"token:\", 12345678, \"abc12345\")",
            "SSL_KEY=/etc/ssl/private/key1.pem",
            "public_key: ABCdef123456",
            "password: ********",
            "PWD=/srv/user1/work",
            ":param token: REQUIRED. The token",
            "print(f\"password={password!r}\")",
            "pub const NO_TOKEN: WIN32_ERROR = 1008u32;",
            "oldKey: ::core::ffi::c_uint,",
            "dot2_token: node.dot2_token,",
            "let union_token = input.parse::<Token![union]>()?;",
            "let last_key = (&*(*self.values.as_ptr()).links).key_ref();",
            "* `baseKey`: {CryptoKey}",
            "move |token: CancellationToken| {",
            "echo ${TOKEN:-fallback-1}",
            "secret: \"[REDACTED]\"",
            "Token: https://tools.example.org/html/rfc6749#section-3.2",
        ];
        for line in table {
            assert_eq!(masked_values(line), [""; 0], "{line}");
        }
    }

    #[test]
    fn paths_and_numbers() {
        for path in ["/srv/a/B9", "/Users/x", "~/x", "./a", "C:\\Users\\x", "/tmp"] {
            assert!(is_path(path), "{path}");
        }
        for other in ["/kX9aBc/dd", "a/b/c", "/aBcDeF", "c:x"] {
            assert!(!is_path(other), "{other}");
        }
        assert!(is_number("2024-01-02") && is_number("1_000.5") && !is_number("0x12"));
    }
}
