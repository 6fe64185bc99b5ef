//! Finds test functions in the text of a file: their names, whether they are skipped, and how much they assert.
//!
//! The common frameworks of a few languages are known ([`TestLanguage`]). A file is read line by line and not parsed: what looks like a
//! test in a comment or a string may count as one, before the work as well as after it.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

/// The most lines of a test, and above it, that are looked at.
const MAX_TEST_LINES: usize = 1_000;
const MAX_LINES_ABOVE: usize = 40;
/// How many times the text of a file may be in its tests, which may stand in each other.
const MAX_NESTED_TESTS: usize = 8;

/// A language whose test frameworks are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestLanguage {
    /// `#[test]`, and attributes of other crates that end like it.
    Rust,
    /// pytest and unittest.
    Python,
    /// jest, vitest and mocha.
    JavaScript,
    /// The package `testing`.
    Go,
    /// JUnit, also in Kotlin.
    Java,
}

/// A test function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestFunction {
    pub name: String,
    /// The comments, attributes and decorators directly above it.
    pub above: String,
    /// The titles of the groups of tests that it is in, one in each line.
    pub groups: String,
    /// The whole text from its first line on.
    pub text: String,
    /// Whether the framework passes over it.
    pub is_skipped: bool,
    /// How many assertions it makes.
    pub assertions: u32,
}

impl TestFunction {
    /// Where the function may name what it tests: its name and text, the groups around it, and what stands directly above it.
    pub fn naming_text(&self) -> String {
        [self.name.as_str(), &self.groups, &self.above, &self.text].join("\n")
    }
}

/// How tests look in one language.
struct LanguageRules {
    /// Marks above a function or in its first line that have the framework pass over it.
    skip_marks: &'static [&'static str],
    /// Calls in the body that do the same.
    skip_calls: &'static [&'static str],
    assertion_words: &'static [&'static str],
    /// How a line of comment begins.
    comment_starts: &'static [&'static str],
}

impl TestLanguage {
    pub fn from_path(path: &str) -> Option<TestLanguage> {
        let (start, extension) = path.rsplit_once('.')?;
        match extension {
            "rs" => Some(TestLanguage::Rust),
            "py" => Some(TestLanguage::Python),
            "js" | "jsx" | "ts" | "tsx" | "mjs" | "cjs" | "mts" | "cts" => Some(TestLanguage::JavaScript),
            "go" => start.ends_with("_test").then_some(TestLanguage::Go),
            "java" | "kt" => Some(TestLanguage::Java),
            _ => None,
        }
    }

    fn rules(self) -> LanguageRules {
        match self {
            TestLanguage::Rust => LanguageRules {
                skip_marks: &["#[ignore", "#[cfg(any())]", "#[cfg(FALSE)]"],
                skip_calls: &[],
                assertion_words: &["assert", "should_panic", "panic!", "unreachable!", "expect_test", "expect!["],
                comment_starts: &["//", "#[", "*", "/*"],
            },
            TestLanguage::Python => LanguageRules {
                skip_marks: &[
                    "mark.skip",
                    "mark.xfail",
                    "unittest.skip",
                    "@skip",
                    "@expectedFailure",
                    "unittest.expectedFailure",
                ],
                skip_calls: &["pytest.skip(", "self.skipTest(", "pytest.xfail(", "raise SkipTest"],
                assertion_words: &["assert", "pytest.raises", "pytest.warns", "pytest.fail", "self.fail("],
                comment_starts: &["#", "@"],
            },
            TestLanguage::JavaScript => LanguageRules {
                skip_marks: &[".skip", ".todo", "xit(", "xtest(", "xdescribe(", ".fails"],
                skip_calls: &["this.skip(", "context.skip("],
                assertion_words: &[
                    "expect(",
                    "expect.",
                    "assert",
                    "should.",
                    ".should(",
                    "t.is(",
                    "t.not(",
                    "t.true(",
                    "t.false(",
                    "t.deepEqual(",
                    "t.throws",
                ],
                comment_starts: &["//", "*", "/*"],
            },
            TestLanguage::Go => LanguageRules {
                skip_marks: &[],
                skip_calls: &["t.Skip(", "t.SkipNow(", "t.Skipf("],
                assertion_words: &[
                    "t.Error",
                    "t.Fatal",
                    "t.Fail",
                    "require.",
                    "assert.",
                    ".Equal(",
                    ".NoError(",
                    ".True(",
                    ".False(",
                    ".Nil(",
                ],
                comment_starts: &["//", "*", "/*"],
            },
            TestLanguage::Java => LanguageRules {
                skip_marks: &["@Disabled", "@Ignore"],
                skip_calls: &["assumeTrue(false", "Assumptions.abort("],
                assertion_words: &["assert", "Assert", "verify(", "fail(", "expect", "Expect", "should"],
                comment_starts: &["//", "*", "/*", "@"],
            },
        }
    }

    /// Returns the name of the test that begins in a line; `above` is what stands directly above it.
    fn find_name(self, line: &str, above: &str) -> Option<String> {
        let trimmed = line.trim_start();
        match self {
            TestLanguage::Rust => {
                let is_test = above.lines().any(|attribute| {
                    let attribute = attribute.trim();
                    attribute.starts_with("#[") && has_test_attribute(attribute)
                });
                let (_, rest) = trimmed.split_once("fn ").filter(|_| is_test)?;
                take_identifier(rest)
            }
            TestLanguage::Python => {
                let rest = trimmed.strip_prefix("async ").unwrap_or(trimmed).strip_prefix("def ")?;
                take_identifier(rest).filter(|name| name.starts_with("test"))
            }
            TestLanguage::JavaScript => find_javascript_name(trimmed),
            TestLanguage::Go => {
                let rest = trimmed.strip_prefix("func ")?;
                // The test of a suite has the suite before its name.
                let method = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|(_, rest)| rest);
                take_identifier(method.unwrap_or(rest)).filter(|name| {
                    ["Test", "Fuzz", "Benchmark"].iter().any(|start| name.starts_with(start))
                        && (method.is_some() || rest.contains("testing."))
                })
            }
            TestLanguage::Java => {
                let is_test = above.lines().any(|line| {
                    let line = line.trim();
                    ["@Test", "@ParameterizedTest", "@RepeatedTest", "@TestFactory"]
                        .iter()
                        .any(|mark| line.starts_with(mark))
                });
                let (declaration, _) = trimmed.split_once('(').filter(|_| {
                    (is_test && !trimmed.starts_with('@')) || trimmed.starts_with("@Test ") && trimmed.ends_with('{')
                })?;
                let name = declaration.trim_end().trim_end_matches('`');
                Some(name.rsplit([' ', '`']).next()?.to_string()).filter(|name| !name.is_empty())
            }
        }
    }
}

fn has_test_attribute(attribute: &str) -> bool {
    let inner = attribute.trim_start_matches("#[").trim_end_matches(']');
    let name = inner.split(['(', ' ', ']']).next().unwrap_or_default();
    name.rsplit("::")
        .next()
        .is_some_and(|last| matches!(last, "test" | "rstest" | "test_case" | "quickcheck" | "proptest"))
}

fn take_identifier(text: &str) -> Option<String> {
    let name: String = text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// Returns the title in `it('…'`, `test.skip("…"` and the like.
fn find_javascript_name(line: &str) -> Option<String> {
    let (call, rest) = line.split_once('(')?;
    let word = call.trim().split(['.', '(']).next()?;
    let is_test = matches!(word, "it" | "test" | "xit" | "xtest" | "fit" | "specify") || call.trim() == "Deno.test";
    if !is_test {
        return None;
    }
    // `it.each(table)('…'` has its title in the second call.
    let quote_at = rest.find(['\'', '"', '`'])?;
    let quote = rest[quote_at..].chars().next()?;
    let title = &rest[quote_at + 1..];
    Some(title[..title.find(quote).unwrap_or(title.len())].to_string())
}

/// Finds the test functions of a file.
pub fn find_test_functions(language: TestLanguage, text: &str) -> Vec<TestFunction> {
    let rules = language.rules();
    let lines: Vec<&str> = text.lines().collect();
    let is_whole_file_skipped = skips_whole_file(language, text);
    let mut functions = Vec::new();
    let mut above_from = 0;
    // The brackets of an attribute or decorator that are still open.
    let mut open_brackets = 0;
    // Blocks that are passed over as a whole, with the column at which they begin.
    let mut skipped_blocks: Vec<usize> = Vec::new();
    let mut groups: Vec<(usize, &str)> = Vec::new();
    let mut text_budget = text.len().saturating_mul(MAX_NESTED_TESTS);
    for (index, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let column = line.len() - trimmed.len();
        let is_mark = trimmed.starts_with("#[") || trimmed.starts_with('@');
        if trimmed.is_empty()
            || open_brackets > 0
            || rules.comment_starts.iter().any(|start| trimmed.starts_with(start))
        {
            if open_brackets > 0 || is_mark {
                open_brackets = (open_brackets + count_open(line, ['(', '['], [')', ']'])).max(0);
            }
            // `@Test void sums() {` is one line.
            if !(language == TestLanguage::Java && trimmed.starts_with("@Test ") && trimmed.ends_with('{')) {
                continue;
            }
        }
        skipped_blocks.retain(|block_column| column > *block_column || trimmed.starts_with(['}', ')']));
        groups.retain(|(group_column, _)| column > *group_column);
        if !may_begin_test(language, trimmed) {
            above_from = index + 1;
            continue;
        }
        let above = lines[above_from.max(index.saturating_sub(MAX_LINES_ABOVE))..index].join("\n");
        above_from = index + 1;
        // The title of a test may stand in the next lines.
        let joined = lines[index..lines.len().min(index + 3)].join(" ");
        let declaration = if language == TestLanguage::JavaScript { joined.as_str() } else { line };
        if let Some(name) = language.find_name(declaration, &above) {
            let line_count = count_lines(language, &lines[index..]);
            // Tests that never end contain each other.
            let body = lines[index..index + line_count.min(MAX_TEST_LINES)].join("\n");
            let body = if body.len() <= text_budget { body } else { line.to_string() };
            text_budget -= body.len().min(text_budget);
            let has_mark = |text: &str| rules.skip_marks.iter().any(|mark| text.contains(mark));
            let first_line = body.lines().next().unwrap_or_default();
            let call = first_line.split(['\'', '"', '`']).next().unwrap_or_default();
            let is_skipped = is_whole_file_skipped
                || !skipped_blocks.is_empty()
                || has_mark(&without_comments(&above))
                || (language == TestLanguage::JavaScript && has_mark(call))
                || rules.skip_calls.iter().any(|call| without_comments(&body).contains(call));
            let assertions =
                count_assertions(&rules, &without_comments(&[above.as_str(), "\n", body.as_str()].concat()));
            let group_titles: Vec<&str> = groups.iter().map(|(_, title)| *title).collect();
            functions.push(TestFunction {
                name,
                above: above.trim().to_string(),
                groups: group_titles.join("\n"),
                text: body,
                is_skipped,
                assertions,
            });
            continue;
        }
        if begins_skipped_block(language, trimmed, &above, &rules) {
            skipped_blocks.push(column);
        }
        if begins_group(trimmed) {
            groups.push((column, trimmed));
        }
    }
    if functions.iter().any(is_focused) {
        functions.iter_mut().filter(|function| !is_focused(function)).for_each(|function| function.is_skipped = true);
    }
    functions
}

/// Whether a test or a group of tests may begin in a line. What stands above it is only looked at then.
fn may_begin_test(language: TestLanguage, trimmed: &str) -> bool {
    match language {
        TestLanguage::Rust => trimmed.contains("fn ") || trimmed.starts_with("mod "),
        TestLanguage::Python => ["def ", "async def ", "class "].iter().any(|start| trimmed.starts_with(start)),
        TestLanguage::JavaScript => {
            let word: String = trimmed.chars().take_while(|c| c.is_alphanumeric()).collect();
            let known =
                ["it", "test", "xit", "xtest", "fit", "specify", "describe", "xdescribe", "suite", "context", "Deno"];
            known.contains(&word.as_str())
        }
        TestLanguage::Go => trimmed.starts_with("func "),
        TestLanguage::Java => trimmed.contains('(') || trimmed.contains("class "),
    }
}

/// How many more brackets a line opens than it closes, outside of its strings.
fn count_open<const N: usize>(line: &str, opening: [char; N], closing: [char; N]) -> i32 {
    let mut count = 0;
    let mut quote = None;
    let mut characters = line.chars().peekable();
    let has_pairs = line.matches('\'').count().is_multiple_of(2);
    while let Some(character) = characters.next() {
        match quote {
            Some(_) if character == '\\' => drop(characters.next()),
            Some(open_quote) => quote = (character != open_quote).then_some(open_quote),
            // A lifetime has no second quote; a character has it right behind.
            None if character == '\'' => {
                let rest: String = characters.clone().take(3).collect();
                quote =
                    (rest.starts_with('\\') || rest.chars().nth(1) == Some('\'') || rest.contains(' ') || has_pairs)
                        .then_some('\'');
            }
            None if matches!(character, '"' | '`') => quote = Some(character),
            None if character == '/' && characters.peek() == Some(&'/') => break,
            None if opening.contains(&character) => count += 1,
            None if closing.contains(&character) => count -= 1,
            None => {}
        }
    }
    count
}

/// Whether the framework runs only tests like this one: `it.only(…)`.
fn is_focused(function: &TestFunction) -> bool {
    let first_line = function.text.lines().next().unwrap_or_default().trim_start();
    let call = first_line.split(['\'', '"', '`']).next().unwrap_or_default();
    (call.starts_with("it.") || call.starts_with("test.") || call.starts_with("fit("))
        && (call.contains(".only") || call.starts_with("fit("))
}

fn skips_whole_file(language: TestLanguage, text: &str) -> bool {
    match language {
        TestLanguage::Python => text.lines().any(|line| {
            (line.starts_with("pytestmark") && (line.contains("skip") || line.contains("xfail")))
                || (line.starts_with("pytest.skip(") && line.contains("allow_module_level"))
        }),
        TestLanguage::Go => text.lines().any(|line| matches!(line.trim(), "//go:build ignore" | "// +build ignore")),
        _ => false,
    }
}

/// Whether a group of tests begins here: a suite, a class, a module.
fn begins_group(trimmed: &str) -> bool {
    ["describe", "suite(", "context(", "class ", "mod "].iter().any(|start| trimmed.starts_with(start))
}

/// Whether a group of tests begins here that is passed over as a whole.
fn begins_skipped_block(language: TestLanguage, trimmed: &str, above: &str, rules: &LanguageRules) -> bool {
    let is_marked_above = || rules.skip_marks.iter().any(|mark| without_comments(above).contains(mark));
    match language {
        TestLanguage::JavaScript => {
            ["describe.skip", "xdescribe(", "suite.skip", "context.skip"].iter().any(|start| trimmed.starts_with(start))
        }
        TestLanguage::Python => trimmed.starts_with("class ") && is_marked_above(),
        TestLanguage::Java => trimmed.contains("class ") && is_marked_above(),
        TestLanguage::Rust => trimmed.starts_with("mod ") && is_marked_above(),
        TestLanguage::Go => false,
    }
}

/// Counts the lines of a function that begins in the first one.
fn count_lines(language: TestLanguage, lines: &[&str]) -> usize {
    let indent_of = |line: &str| line.len() - line.trim_start().len();
    if language == TestLanguage::Python {
        let own_indent = lines.first().map_or(0, |line| indent_of(line));
        let is_inside =
            |line: &&&str| line.trim().is_empty() || indent_of(line) > own_indent || line.trim_start().starts_with(')');
        let mut count = 1 + lines.iter().skip(1).take_while(is_inside).count();
        while count > 1 && lines[count - 1].trim().is_empty() {
            count -= 1;
        }
        return count;
    }
    // A call is over with its last bracket; a function with the brace that closes its body.
    let (opening, closing) = match language {
        TestLanguage::JavaScript => (['{', '(', '['], ['}', ')', ']']),
        _ => (['{'; 3], ['}'; 3]),
    };
    let (mut depth, mut has_opened) = (0_i32, false);
    for (index, line) in lines.iter().enumerate().take(MAX_TEST_LINES) {
        depth += count_open(line, opening, closing);
        has_opened |= line.contains(opening);
        let is_one_line = !has_opened && line.trim_end().ends_with(';');
        if (has_opened && depth <= 0) || is_one_line {
            return index + 1;
        }
    }
    lines.len().min(MAX_TEST_LINES)
}

fn count_assertions(rules: &LanguageRules, text: &str) -> u32 {
    let count: usize = rules.assertion_words.iter().map(|word| text.matches(word).count()).sum();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A text without the lines that are only comments.
fn without_comments(text: &str) -> String {
    let is_comment = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("//")
            || line.starts_with("/*")
            || line.starts_with("* ")
            || (line.starts_with('#') && !line.starts_with("#["))
    };
    let kept: Vec<&str> = text.lines().filter(|line| !is_comment(line)).collect();
    kept.join("\n")
}

/// The text of a test without what formatting changes.
pub fn normalize_test(function: &TestFunction) -> String {
    let (_, body) = function.text.split_once(function.name.as_str()).unwrap_or(("", &function.text));
    without_comments(body).split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use alloc::{format, vec};

    use super::*;

    /// Shows functions as `name`, `name (skipped)`, with the number of their assertions.
    fn describe(language: TestLanguage, text: &str) -> Vec<String> {
        let describe_function = |function: &TestFunction| {
            let skip_text = if function.is_skipped { " (skipped)" } else { "" };
            format!("{}{skip_text} {}", function.name, function.assertions)
        };
        find_test_functions(language, text).iter().map(describe_function).collect()
    }

    #[test]
    fn rust_tests_are_functions_with_the_attribute() {
        let text = "fn helper() { assert!(true); }\n\n#[test]\nfn adds() {\n    assert_eq!(1 + 1, 2);\n}\n\n#[tokio::test]\n\
                    #[ignore = \"slow\"]\nasync fn waits() {\n    wait().await;\n}\n\n#[test]\n#[should_panic]\nfn fails() { go(); }\n\
                    // #[ignore]\n#[test]\nfn runs() {}\n";
        assert_eq!(describe(TestLanguage::Rust, text), ["adds 1", "waits (skipped) 0", "fails 1", "runs 0"]);
    }

    #[test]
    fn python_tests_are_functions_and_methods_named_so() {
        let text = "import pytest\n\ndef helper():\n    assert 1\n\ndef test_a(x):\n    assert x\n    with pytest.raises(E):\n        \
                    go()\n\n@pytest.mark.skip(reason='x')\ndef test_b():\n    assert 0\n\n@unittest.skip('x')\nclass TestC(TestCase):\n    \
                    def test_c(self):\n        self.assertEqual(1, 1)\n\nclass TestD:\n    def test_d(self):\n        \
                    pytest.skip('later')\n";
        let expected = ["test_a 2", "test_b (skipped) 1", "test_c (skipped) 1", "test_d (skipped) 0"];
        assert_eq!(describe(TestLanguage::Python, text), expected);
        assert_eq!(
            describe(TestLanguage::Python, "pytestmark = pytest.mark.skip\ndef test_a():\n    pass\n"),
            ["test_a (skipped) 0"]
        );
    }

    #[test]
    fn javascript_tests_are_calls_with_a_title() {
        let text = "describe('sum', () => {\n  it('adds', () => {\n    expect(1 + 1).toBe(2);\n  });\n\
                    \x20 it.skip(\"waits\", async () => {\n    expect(1).toBe(1);\n  });\n  xit('x', () => {});\n\
                    \x20 test.todo('later');\n});\ndescribe.skip('b', () => {\n  test('c', () => {\n    expect(1);\n  });\n});\n\
                    test('d', () => expect(1).toBe(1));\n";
        let expected = ["adds 1", "waits (skipped) 1", "x (skipped) 0", "later (skipped) 0", "c (skipped) 1", "d 1"];
        assert_eq!(describe(TestLanguage::JavaScript, text), expected);
        let focused = "it.only('a', () => {\n  expect(1);\n});\nit('b', () => {\n  expect(1);\n});\n";
        assert_eq!(describe(TestLanguage::JavaScript, focused), ["a 1", "b (skipped) 1"]);
    }

    #[test]
    fn go_and_junit_tests_are_known_as_well() {
        let go = "func TestSum(t *testing.T) {\n\tif sum(1) != 1 {\n\t\tt.Errorf(\"x\")\n\t}\n}\n\nfunc TestSlow(t *testing.T) {\n\t\
                  t.Skip(\"x\")\n}\nfunc TestHelper() {}\n";
        assert_eq!(describe(TestLanguage::Go, go), ["TestSum 1", "TestSlow (skipped) 0"]);
        let java = "class SumTest {\n  @Test\n  void adds() {\n    assertEquals(2, 1 + 1);\n  }\n\n  @Disabled\n  @Test\n  public \
                    void waits() {\n  }\n\n    void helper() {\n  }\n}\n";
        assert_eq!(describe(TestLanguage::Java, java), ["adds 1", "waits (skipped) 0"]);
    }

    #[test]
    fn what_formatters_make_of_tests_is_read_as_well() {
        let rust = "#[tokio::test(\n    flavor = \"multi_thread\",\n)]\n#[should_panic(\n    expected = \"x\"\n)]\n\
                    async fn a() {\n    let c = '}';\n    assert!(c);\n}\n";
        assert_eq!(describe(TestLanguage::Rust, rust), ["a 2"]);
        let python =
            "@pytest.mark.parametrize(\n    'a', [\n        (1, 2),\n    ],\n)\ndef test_a(a):\n    assert a\n";
        assert_eq!(describe(TestLanguage::Python, python), ["test_a 1"]);
        let prettier = "it(\n  'AC1: sums',\n  () => {\n    expect(1).toBe(1);\n  },\n);\n\
                        test('b', () => expect(1))\ntest('c', () => expect(2))\n";
        assert_eq!(describe(TestLanguage::JavaScript, prettier), ["AC1: sums 1", "b 1", "c 1"]);
        let go = "func (s *SiftSuite) TestSift() {\n\ts.Equal(1, 1)\n}\n";
        assert_eq!(describe(TestLanguage::Go, go), ["TestSift 1"]);
        let java = "  @ParameterizedTest\n  @CsvSource({\n    \"1, 2\",\n  })\n  void sums(int a) {\n    \
                    assertEquals(1, a);\n  }\n  @Test void b() {\n  }\n";
        assert_eq!(describe(TestLanguage::Java, java), ["sums 1", "b 0"]);
    }

    #[test]
    fn long_files_are_read_in_time_that_grows_with_them() {
        let brace_less = "test('a1', () => expect(1).toBe(1))\n".repeat(20_000);
        assert_eq!(find_test_functions(TestLanguage::JavaScript, &brace_less).len(), 20_000);
        let comments = "// x = 1;\n".repeat(80_000);
        assert_eq!(find_test_functions(TestLanguage::Rust, &comments), []);
        let unclosed = "#[test]\nfn a() {\n".repeat(20_000);
        let functions = find_test_functions(TestLanguage::Rust, &unclosed);
        assert_eq!(functions.len(), 20_000);
        assert!(functions.iter().map(|function| function.text.len()).sum::<usize>() < 10 * unclosed.len());
        let one_line = format!("it('a', () => [{}])\n", "'x',".repeat(200_000));
        assert_eq!(find_test_functions(TestLanguage::JavaScript, &one_line).len(), 1);
    }

    #[test]
    fn only_known_languages_have_rules() {
        let languages =
            ["a.rs", "tests/a.py", "a.test.ts", "a.go", "a_test.go", "ATest.java", "tests/a.sh", "Makefile"]
                .map(TestLanguage::from_path);
        let expected = vec![
            Some(TestLanguage::Rust),
            Some(TestLanguage::Python),
            Some(TestLanguage::JavaScript),
            None,
            Some(TestLanguage::Go),
            Some(TestLanguage::Java),
            None,
            None,
        ];
        assert_eq!(languages.to_vec(), expected);
    }
}
