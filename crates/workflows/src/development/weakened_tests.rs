//! What work makes of tests that were there: removed, emptied and skipped ones, and ones that assert less.

use alloc::{collections::BTreeMap, format, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::development::test_functions::{TestFunction, normalize_test};

/// The most tests that a message names.
const MAX_NAMED_TESTS: usize = 5;

/// The tests of one file.
#[derive(Clone, Debug)]
pub struct TestFile {
    pub path: String,
    pub functions: Vec<TestFunction>,
}

/// What became of the tests of one file. Their names are as the file has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WeakenedTests {
    pub path: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// They are there, and assert nothing any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emptied: Vec<String>,
    /// They are there, and no longer run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
}

impl WeakenedTests {
    fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.emptied.is_empty() && self.skipped.is_empty()
    }

    /// Describes it as a part of a sentence about the work.
    pub fn describe(&self) -> String {
        let parts = [("removes", &self.removed), ("empties", &self.emptied), ("skips", &self.skipped)];
        let named = parts.into_iter().filter(|(_, names)| !names.is_empty()).map(|(verb, names)| {
            let shown: Vec<String> = names.iter().take(MAX_NAMED_TESTS).map(|name| format!("`{name}`")).collect();
            let more = names.len() - shown.len();
            let more_text = if more > 0 { format!(" and {more} more") } else { String::new() };
            let noun = if names.len() == 1 { "the test" } else { "the tests" };
            format!("{verb} {noun} {}{more_text}", shown.join(", "))
        });
        format!("{} in {}", named.collect::<Vec<String>>().join(" and "), self.path)
    }
}

/// A test that asserts less than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FewerAssertions {
    pub path: String,
    pub name: String,
    pub before: u32,
    pub after: u32,
}

/// What work makes of tests.
#[derive(Clone, Debug, Default)]
pub struct TestChanges {
    pub weakened: Vec<WeakenedTests>,
    pub fewer: Vec<FewerAssertions>,
}

/// Compares the tests of changed files. A test with the same name or body in another file has moved there.
pub fn compare_tests(before: &[TestFile], after: &[TestFile]) -> TestChanges {
    let (old_tests, new_tests) = (KnownTests::from_files(before), KnownTests::from_files(after));
    let mut changes = TestChanges::default();
    for old_file in before {
        let mut weakened = WeakenedTests { path: old_file.path.clone(), ..WeakenedTests::default() };
        // Two classes of a file may have tests of the same name.
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for old in &old_file.functions {
            let place = counts.entry(&old.name).or_default();
            let same_named = new_tests.list_named(&old_file.path, &old.name).get(*place).copied();
            *place += 1;
            let Some(new) = same_named.or_else(|| new_tests.find_moved(old, &old_tests)) else {
                weakened.removed.push(old.name.clone());
                continue;
            };
            if new.is_skipped && !old.is_skipped {
                weakened.skipped.push(old.name.clone());
            } else if new.assertions == 0 && old.assertions > 0 {
                weakened.emptied.push(old.name.clone());
            } else if new.assertions < old.assertions {
                changes.fewer.push(FewerAssertions {
                    path: old_file.path.clone(),
                    name: old.name.clone(),
                    before: old.assertions,
                    after: new.assertions,
                });
            }
        }
        if !weakened.is_empty() {
            changes.weakened.push(weakened);
        }
    }
    changes
}

/// Tests by their names and bodies: a file may have tens of thousands.
#[derive(Default)]
struct KnownTests<'t> {
    by_place: BTreeMap<&'t str, BTreeMap<&'t str, Vec<&'t TestFunction>>>,
    by_name: BTreeMap<&'t str, Vec<(&'t str, &'t TestFunction)>>,
    by_body: BTreeMap<String, &'t TestFunction>,
}

impl<'t> KnownTests<'t> {
    fn from_files(files: &'t [TestFile]) -> KnownTests<'t> {
        let mut known = KnownTests::default();
        for TestFile { path, functions } in files {
            for function in functions {
                let name = function.name.as_str();
                known.by_place.entry(path).or_default().entry(name).or_default().push(function);
                let files_of_name = known.by_name.entry(name).or_default();
                // The first one of a file is enough.
                if files_of_name.last().is_none_or(|(last_path, _)| last_path != path) {
                    files_of_name.push((path, function));
                }
                known.by_body.entry(normalize_test(function)).or_insert(function);
            }
        }
        known
    }

    fn list_named(&self, path: &str, name: &str) -> &[&'t TestFunction] {
        self.by_place.get(path).and_then(|names| names.get(name)).map_or(&[], Vec::as_slice)
    }

    /// Finds a test under another name, or in another file. One that was in that file before is another test of the same name.
    fn find_moved(&self, old: &TestFunction, old_tests: &KnownTests<'_>) -> Option<&'t TestFunction> {
        let mut elsewhere = self.by_name.get(old.name.as_str()).into_iter().flatten();
        let moved = elsewhere.find(|(path, _)| old_tests.list_named(path, &old.name).is_empty());
        moved.map(|(_, function)| *function).or_else(|| {
            // A body without assertions is that of many tests.
            let same_body = self.by_body.get(&normalize_test(old)).filter(|_| old.assertions > 0);
            same_body.copied()
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::{string::ToString, vec};

    use super::*;
    use crate::development::test_functions::{TestLanguage, find_test_functions};

    fn rust_file(path: &str, tests: &[(&str, &str)]) -> TestFile {
        let text: String = tests.iter().map(|(head, body)| format!("#[test]\n{head} {{\n{body}\n}}\n")).collect();
        TestFile { path: path.into(), functions: find_test_functions(TestLanguage::Rust, &text) }
    }

    fn describe(before: &[TestFile], after: &[TestFile]) -> (Vec<String>, Vec<String>) {
        let changes = compare_tests(before, after);
        let fewer = changes.fewer.iter().map(|less| format!("{} {}→{}", less.name, less.before, less.after));
        (changes.weakened.iter().map(WeakenedTests::describe).collect(), fewer.collect())
    }

    #[test]
    fn removed_emptied_and_skipped_tests_are_named() {
        let before = rust_file(
            "a.rs",
            &[
                ("fn a()", "assert!(one());"),
                ("fn b()", "assert!(two());"),
                ("fn c()", "assert!(three());\nassert!(four());"),
                ("fn d()", "assert!(five());"),
            ],
        );
        let after = rust_file(
            "a.rs",
            &[
                ("fn b()", "two();"),
                ("fn c()", "assert!(three());"),
                ("#[ignore]\nfn d()", "assert!(five());"),
                ("fn e()", "assert!(six());"),
            ],
        );
        let expected = "removes the test `a` and empties the test `b` and skips the test `d` in a.rs";
        assert_eq!(describe(&[before], &[after]), (vec![expected.to_string()], vec!["c 2→1".to_string()]));
    }

    #[test]
    fn many_tests_are_compared_in_time_that_grows_with_them() {
        let make_file = |word: &str| {
            let text: String =
                (0..20_000).map(|n| format!("test('{word}{n}', () => expect({n}).toBe('{word}'))\n")).collect();
            TestFile { path: "a.test.js".into(), functions: find_test_functions(TestLanguage::JavaScript, &text) }
        };
        let changes = compare_tests(&[make_file("old")], &[make_file("new")]);
        assert_eq!(changes.weakened[0].removed.len(), 20_000);
    }

    #[test]
    fn a_test_that_has_moved_is_not_removed() {
        let before = [rust_file("a.rs", &[("fn a()", "assert!(one());"), ("fn b()", "assert!(two());")])];
        // Another name with the same body, and another file with the same name.
        let after = [
            rust_file("a.rs", &[("fn renamed()", "assert!( one() );")]),
            rust_file("b.rs", &[("fn b()", "assert!(two_more());")]),
        ];
        assert_eq!(describe(&before, &after), (vec![], vec![]));
        // A test that has the same name in another file was there before.
        let both =
            [rust_file("a.rs", &[("fn a()", "assert!(one());")]), rust_file("b.rs", &[("fn a()", "assert!(two());")])];
        let left = [rust_file("a.rs", &[]), rust_file("b.rs", &[("fn a()", "assert!(two());\n// more")])];
        assert_eq!(describe(&both, &left).0, ["removes the test `a` in a.rs"]);
        // A name that is gone without a trace is a test that is gone.
        let other = [rust_file("b.rs", &[("fn c()", "assert!(true);")])];
        assert_eq!(describe(&before, &other).0, ["removes the tests `a`, `b` in a.rs"]);
    }
}
