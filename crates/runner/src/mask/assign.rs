//! Secrets without a shape of their own, found by the name they are assigned to.
//!
//! `NAME=value`, `name: value`, `"name": "value"` (also with escaped quotes), `name => value`, `name := value` and
//! `const NAME: &str = "value"`. The name decides whether to look, the value whether it is masked: references, placeholders,
//! numbers, paths, identifiers and, outside quotes, calls and type names are left, since agents print source code all day.

use std::ops::Range;

use regex::Regex;

use super::rules::compile;

/// A longer quoted value is taken for text with an unbalanced quote.
const LONGEST_QUOTED: usize = 8 * 1024;

const SHORTEST: usize = 8;

pub(super) const TRIGGERS: &[&str] =
    &["key", "secret", "token", "passw", "passphrase", "pwd", "credential", "auth"];

/// What may precede an expression.
macro_rules! lead {
    () => {
        r"^[&*!$(\[{|]*"
    };
}

const PATTERNS: &[(&str, &str)] = &[
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

/// Words before `key` that make it an index and not a secret.
const HARMLESS_KEYS: &[&str] = &["public", "primary", "foreign", "cache", "sort", "partition", "pub"];

/// Words that may precede `key` or `token` without a border between them.
const GLUED: &[&str] = &[
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
pub(super) struct Assignments {
    head: Regex,
    reference: Regex,
    code: Regex,
    stand_in: Regex,
}

/// What is known about the place of a value.
struct Place {
    quoted: bool,
    /// `NAME=value` as a shell writes it: the value is data, never code.
    shell: bool,
    password: bool,
}

impl Assignments {
    pub(super) fn new() -> Assignments {
        let [head, reference, code, stand_in] =
            [0, 1, 2, 3].map(|at: usize| compile(PATTERNS[at].0, PATTERNS[at].1));
        Assignments { head, reference, code, stand_in }
    }

    /// Calls `on_secret` with the start of the name and the range of each value to mask.
    pub(super) fn find(&self, line: &str, mut hit: impl FnMut(usize, Range<usize>)) {
        let mut from = 0;
        // The pattern only finds candidates; name, separator and value each may still rule one out.
        while let Some(found) = self.head.captures_at(line, from) {
            let (Some(whole), Some(word)) = (found.get(0), found.get(1)) else {
                return;
            };
            from = whole.end();
            let separator = found.get(2).map_or("=", |m| m.as_str());
            let after = found.get(2).map_or(whole.end(), |m| m.end());
            let next = line.as_bytes().get(after);
            if matches!(next, Some(b'=' | b'~' | b':')) || line[after..].starts_with("//") {
                continue; // a comparison, a path `a::b`, a scheme
            }
            let name = name_start(line, word.start());
            if line[..name].ends_with("${") {
                continue; // `${TOKEN:-default}`
            }
            if !is_secret_name(&line[name..word.start()], word.as_str(), separator) {
                continue;
            }
            // A shell allows no space around the equals sign, and its variables are upper case by convention.
            let shell = after == whole.end()
                && separator == "="
                && word.as_str().bytes().all(|b| b.is_ascii_uppercase());
            let (value, quoted) = value_range(line, whole.end());
            let place =
                Place { quoted, shell, password: word.as_str().as_bytes()[0].eq_ignore_ascii_case(&b'p') };
            if !self.is_harmless(&line[value.clone()], &place) {
                // The search continues after the value, which may contain words that look like a name.
                from = value.end;
                hit(name, value);
            }
        }
    }

    fn is_harmless(&self, value: &str, place: &Place) -> bool {
        let bytes = value.as_bytes();
        if value.len() < SHORTEST || is_number(value) || is_path(value) {
            return true;
        }
        // Plain lower-case identifiers are variables or words; generated secrets have digits or capitals.
        if bytes.iter().all(|b| *b == b'_' || b.is_ascii_lowercase())
            || bytes.iter().all(u8::is_ascii_punctuation)
            || self.stand_in.is_match(value)
        {
            return true;
        }
        // Placeholders such as `<your key>` and special tokens such as `<|end|>`.
        if bytes[0] == b'<' && (bytes[1] == b'|' || bytes[1].is_ascii_alphabetic()) {
            return true;
        }
        // What remains without references decides: `prefix-${TOKEN}` contains no secret itself.
        if self.reference.replace_all(value, "").len() < SHORTEST {
            return true;
        }
        if place.quoted {
            // The quote was a closing one (`"token:", 12`), or the value is a sentence.
            let closing = matches!(bytes[0], b' ' | b',' | b')' | b']' | b'}' | b':' | b'+');
            let sentence = !place.password && value.contains(' ') && !bytes.iter().any(u8::is_ascii_digit);
            return closing || sentence;
        }
        !place.shell && self.code.is_match(value)
    }
}

/// Walks back over the rest of the name. Bounded, so that a long run is not walked again and again.
fn name_start(line: &str, word: usize) -> usize {
    let bytes = line.as_bytes();
    let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let run = bytes[..word].iter().rev().take(64);
    let mut start = word - run.take_while(|b| is_name(**b)).count();
    // The letter of an escaped line end (`\nAPI_KEY=`) is not part of the name.
    if start < word && start > 0 && bytes[start - 1] == b'\\' && b"nrt".contains(&bytes[start]) {
        start += 1;
    }
    start
}

/// Whether a name denotes a secret; `prefix` is the name up to `name_word`, the word before the separator.
fn is_secret_name(prefix: &str, word: &str, separator: &str) -> bool {
    let word_is = |options: &[&str]| options.iter().any(|o| word.eq_ignore_ascii_case(o));
    // A camel-case border such as `apiKey` has no separator character.
    let last = prefix.bytes().last();
    let camel = last.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        && word.as_bytes()[0].is_ascii_uppercase()
        && !word.bytes().all(|b| b.is_ascii_uppercase());
    let border = camel || !last.is_some_and(|b| b.is_ascii_alphanumeric());
    let lower = prefix.to_ascii_lowercase();
    let glued = GLUED.iter().any(|word| lower.ends_with(word));
    let stem = lower.trim_end_matches(['_', '-', '.']);
    // `key` alone is an index far more often than a secret, so it needs a telling prefix.
    if word_is(&["key"]) {
        let harmless = HARMLESS_KEYS.iter().any(|word| stem.ends_with(word));
        return (border || glued) && !stem.is_empty() && !harmless;
    }
    if word_is(&["token"]) {
        return border || glued;
    }
    if word_is(&["credential", "credentials"]) {
        return border && !stem.is_empty();
    }
    // `_auth=` is the form of npm's configuration; `auth` alone usually is not a secret.
    if word_is(&["auth"]) {
        return last == Some(b'_') && separator == "=";
    }
    // `PGPASSWORD`, `clientsecret`: these words are telling enough to be glued to anything.
    border || !word_is(&["pwd"])
}

/// Returns the range of the value that starts at `value_start`, and whether it is quoted.
fn value_range(line: &str, at: usize) -> (Range<usize>, bool) {
    let bytes = line.as_bytes();
    let run = |from: usize, set: &[u8], most: usize| {
        let rest = bytes[from..].iter().take(most);
        from + rest.take_while(|b| set.contains(b)).count()
    };
    // String prefixes of programming languages: b"", f"", r#""#.
    let quote_after = |from: usize| {
        let quote = run(from, b"\\", 8);
        matches!(bytes.get(quote), Some(b'"' | b'\'' | b'`')).then_some((quote, quote - from))
    };
    let prefixed = run(run(at, b"bfruBFRU", 2), b"#", 4);
    if let Some((quote, slashes)) = quote_after(at).or_else(|| quote_after(prefixed)) {
        let start = quote + 1;
        return match closing_quote(&bytes[start..], bytes[quote], slashes) {
            Some(len) => (start..start + len, true),
            // Without a closing quote the value ends like an unquoted one.
            None => (start..unquoted_end(line, start), true),
        };
    }
    (at..unquoted_end(line, at), false)
}

/// Returns the length of a value up to its closing quote, which is escaped exactly like the opening one.
fn closing_quote(bytes: &[u8], quote: u8, slashes: usize) -> Option<usize> {
    let mut run = 0;
    for (at, byte) in bytes.iter().enumerate().take(LONGEST_QUOTED) {
        if *byte == b'\\' {
            run += 1;
            continue;
        }
        // In an escaped string the closing quote has as many backslashes as the opening one, or fewer.
        let closes = if slashes == 0 { run % 2 == 0 } else { run <= slashes };
        if *byte == quote && closes {
            return Some(at - if slashes == 0 { 0 } else { run });
        }
        run = 0;
    }
    None
}

fn unquoted_end(line: &str, at: usize) -> usize {
    let bytes = line.as_bytes();
    let mut end = at;
    while let Some(byte) = bytes.get(end) {
        let next = bytes.get(end + 1).copied().unwrap_or(b' ');
        let stop = match byte {
            b'"' | b'\'' | b'`' | 0..=b' ' | 0x7f => true,
            b'\\' => b"nrtu\"'`\\".contains(&next),
            // `a=1&b=2`, `a=1;b=2`: only where another pair follows, since a password may contain these.
            b'&' | b';' | b',' => starts_pair(&bytes[end + 1..]),
            _ => false,
        };
        if stop {
            break;
        }
        end += 1;
    }
    // Punctuation at the end belongs to the text around the value.
    let value = line[at..end].trim_end_matches([',', ';', ')', '}', ']', '.']);
    at + value.len()
}

fn starts_pair(rest: &[u8]) -> bool {
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let name = rest.iter().take(40).take_while(|b| is_name(b)).count();
    name > 0 && !rest[0].is_ascii_digit() && matches!(rest.get(name), Some(b'=' | b':'))
}

/// Whether it is a number, also a date, a version or a time.
pub(super) fn is_number(value: &str) -> bool {
    value.bytes().all(|b| b.is_ascii_digit() || b".,:_+-".contains(&b))
}

/// Whether it is a file path. Base64 may start with `/` too, so the first part has to look like a directory name.
pub(super) fn is_path(value: &str) -> bool {
    let bytes = value.as_bytes();
    let drive = bytes.len() > 2
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes[2], b'/' | b'\\');
    if drive || ["./", "../", "~/"].iter().any(|start| value.starts_with(start)) {
        return true;
    }
    let Some(rest) = value.strip_prefix('/') else {
        return false;
    };
    let first = rest.split('/').next().unwrap_or_default();
    let tail = first.strip_prefix(|c: char| c.is_ascii_uppercase()).unwrap_or(first);
    let is_folder = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b);
    !first.is_empty() && first.len() <= 32 && tail.bytes().all(is_folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(line: &str) -> Vec<String> {
        let mut found = Vec::new();
        Assignments::new().find(line, |_, range| found.push(line[range].to_owned()));
        found
    }

    #[test]
    fn every_pattern_compiles() {
        for (name, pattern) in PATTERNS {
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
            assert_eq!(values(line), [*value], "{line}");
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
            assert_eq!(values(line), [""; 0], "{line}");
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
