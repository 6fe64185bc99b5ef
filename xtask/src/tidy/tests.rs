//! Tests each rule on a small text that breaks it and on one that just does not.

use std::fs;

use anyhow::{Result, anyhow};

use super::exceptions::SizeExceptions;
use super::names::NameRules;
use super::sizes::{self, TestFiles};
use super::{structure, texts, words};
use crate::RuleBreach;
use crate::repository::{RepositoryTree, SourceFile};

fn parse_source(path: &str, text: &str) -> Result<SourceFile> {
    SourceFile::parse(path, text.to_owned()).map_err(|breach| anyhow!("{breach}"))
}

fn format_breaches(breaches: impl IntoIterator<Item = RuleBreach>) -> Vec<String> {
    breaches.into_iter().map(|breach| breach.to_string()).collect()
}

/// The breaches of the size rules in one file.
fn size_breaches(path: &str, text: &str) -> Result<Vec<String>> {
    let sources = [parse_source(path, text)?];
    let findings = sizes::check_sizes(&sources[0], &TestFiles::from_sources(&sources));
    Ok(format_breaches(findings.into_iter().map(|finding| finding.breach)))
}

fn word_breaches(text: &str) -> Result<Vec<String>> {
    Ok(format_breaches(words::check_words(&parse_source("a.rs", text)?)))
}

fn text_breaches(path: &str, text: &str) -> Vec<String> {
    format_breaches(texts::check_text(path, text))
}

const NONE: [&str; 0] = [];

#[test]
fn a_file_has_500_lines_without_its_tests() -> Result<()> {
    let path = "crates/workflows/src/a.rs";
    let too_long = "crates/workflows/src/a.rs: this file has 501 lines without its tests, at most 500 are allowed";
    let (full, over) = ("\n".repeat(500), "// a comment counts\n".repeat(501));
    assert_eq!(size_breaches(path, &full)?, NONE);
    assert_eq!(size_breaches(path, &over)?, [too_long]);
    for cfg in ["test", "all(test, unix)"] {
        let tests = format!("#[cfg({cfg})]\nmod tests {{\n    #[cfg(test)]\n    mod deeper {{\n    }}\n}}\n");
        assert_eq!(size_breaches(path, &format!("{full}{tests}"))?, NONE);
        assert_eq!(size_breaches(path, &format!("{over}{tests}"))?, [too_long]);
    }
    let other = format!("{full}#[cfg(any(test, unix))]\nmod not_only_tests {{}}\n");
    assert_eq!(size_breaches(path, &other)?.len(), 1);
    Ok(())
}

#[test]
fn a_test_file_may_be_long() -> Result<()> {
    let over = "\n".repeat(501);
    assert_eq!(size_breaches("crates/workflows/tests/a.rs", &over)?, NONE);
    assert_eq!(size_breaches("crates/workflows/benches/a/b.rs", &over)?, NONE);
    assert_eq!(size_breaches("crates/workflows/src/tests.rs", &over)?.len(), 1);

    let declared = |declaring: &str, declaration: &str, path: &str| -> Result<bool> {
        let sources = [parse_source(declaring, declaration)?, parse_source(path, &over)?];
        Ok(sizes::check_sizes(&sources[1], &TestFiles::from_sources(&sources)).is_empty())
    };
    let (test, other) = ("#[cfg(test)]\nmod tests;", "mod tests;");
    assert!(declared("crates/workflows/src/lib.rs", test, "crates/workflows/src/tests.rs")?);
    assert!(declared("crates/workflows/src/rules.rs", test, "crates/workflows/src/rules/tests.rs")?);
    assert!(declared("crates/workflows/src/rules/mod.rs", test, "crates/workflows/src/rules/tests/levels.rs")?);
    assert!(!declared("crates/workflows/src/lib.rs", other, "crates/workflows/src/tests.rs")?);
    assert!(!declared("crates/workflows/src/lib.rs", test, "crates/workflows/src/tests_of_time.rs")?);
    let by_path = "#[cfg(test)]\n#[path = \"rules_tests.rs\"]\nmod tests;";
    assert!(declared("crates/workflows/src/rules.rs", by_path, "crates/workflows/src/rules_tests.rs")?);
    Ok(())
}

#[test]
fn a_function_has_80_lines_from_its_signature_to_its_brace() -> Result<()> {
    let function =
        |lines: usize| format!("/// Docs and attributes\n#[inline]\nfn long() {{{}}}", "\n".repeat(lines - 1));
    assert_eq!(size_breaches("a.rs", &function(80))?, NONE);
    assert_eq!(size_breaches("a.rs", &function(81))?, ["a.rs:3: `long` has 81 lines, at most 80 are allowed"]);
    for wrapped in
        ["impl A { FN }", "trait A { FN }", "mod a { FN }", "fn outer() { FN }", "#[cfg(test)] mod tests { FN }"]
    {
        let found = size_breaches("a.rs", &wrapped.replace("FN", &function(81)))?;
        assert!(found.iter().any(|breach| breach.contains("`long` has 81 lines")), "{wrapped}: {found:?}");
    }
    Ok(())
}

#[test]
fn a_function_has_5_parameters_besides_self() -> Result<()> {
    let five = "a: u8, b: u8, c: u8, d: u8, e: u8";
    assert_eq!(size_breaches("a.rs", &format!("fn f({five}) {{}} impl A {{ fn g(&mut self, {five}) {{}} }}"))?, NONE);
    let found = "a.rs:1: `f` has 6 parameters, at most 5 are allowed";
    assert_eq!(size_breaches("a.rs", &format!("fn f({five}, f: u8) {{}}"))?, [found]);
    assert_eq!(size_breaches("a.rs", &format!("trait A {{ fn f(&self, {five}, f: u8); }}"))?, [found]);
    Ok(())
}

#[test]
fn a_struct_has_12_fields() -> Result<()> {
    let fields = |count: usize| (0..count).map(|at| format!("f{at}: u8,")).collect::<String>();
    assert_eq!(size_breaches("a.rs", &format!("struct A {{ {} }}", fields(12)))?, NONE);
    let found = size_breaches("a.rs", &format!("struct A {{ {} }}", fields(13)))?;
    assert_eq!(found, ["a.rs:1: `A` has 13 fields, at most 12 are allowed"]);
    assert_eq!(size_breaches("a.rs", &format!("struct A({});", "u8,".repeat(13)))?.len(), 1);
    Ok(())
}

#[test]
fn the_journal_has_30_kinds_of_events() -> Result<()> {
    let kinds = |name: &str, count: usize| {
        format!("enum {name} {{ {} }}", (0..count).map(|at| format!("K{at},")).collect::<String>())
    };
    let path = "crates/engine/src/event.rs";
    assert_eq!(size_breaches(path, &kinds("RunEvent", 30))?, NONE);
    let found = "crates/engine/src/event.rs:1: `EventKind` has 31 kinds of journaled events, at most 30 are allowed";
    assert_eq!(size_breaches(path, &kinds("EventKind", 31))?, [found]);
    assert_eq!(size_breaches(path, &kinds("RunEvent", 31))?.len(), 1);
    assert_eq!(size_breaches(path, &kinds("Word", 31))?, NONE);
    assert_eq!(size_breaches("crates/agents/src/event.rs", &kinds("RunEvent", 31))?, NONE);
    Ok(())
}

#[test]
fn lints_are_expected_with_a_reason_and_never_allowed() -> Result<()> {
    let allow = "`allow` silences a lint for good: write #[expect(…, reason = \"…\")]";
    for text in [
        "#[allow(dead_code)] fn f() {}",
        "#![allow(dead_code, reason = \"not even so\")]",
        "#[cfg_attr(unix, inline, allow(dead_code))] fn f() {}",
        "macro_rules! m { () => { #[allow(dead_code)] fn f() {} } }",
    ] {
        assert_eq!(word_breaches(text)?, [format!("a.rs:1: {allow}")], "{text}");
    }
    let no_reason = "a.rs:2: `expect` without a reason: write #[expect(…, reason = \"…\")]";
    for text in [
        "\n#[expect(dead_code)] fn f() {}",
        "\n#[expect(dead_code, reason = \" \")] fn f() {}",
        "\n#[cfg_attr(unix, expect(dead_code))] fn f() {}",
    ] {
        assert_eq!(word_breaches(text)?, [no_reason], "{text}");
    }
    for text in [
        "#[expect(dead_code, reason = \"a format of others\")] fn f() {}",
        "#[clap(allow(x))] fn allow() { a.expect(\"x\"); allow(1) }",
        "#[cfg_attr(allow, inline)] fn f() { \"#[allow(x)]\" } // #[allow(x)]",
    ] {
        assert_eq!(word_breaches(text)?, NONE, "{text}");
    }
    Ok(())
}

#[test]
fn unfinished_macros_are_refused() -> Result<()> {
    for word in ["todo", "unimplemented", "dbg"] {
        let found = [format!("a.rs:1: `{word}!` is left over")];
        assert_eq!(word_breaches(&format!("fn f() {{ {word}!() }}"))?, found);
        assert_eq!(word_breaches(&format!("fn f() {{ assert!(std::{word}![1] > 0) }}"))?, found);
        assert_eq!(word_breaches(&format!("fn {word}() -> bool {{ {word} != (1) }} // {word}!()"))?, NONE);
    }
    Ok(())
}

#[test]
fn paths_of_one_machine_are_refused() {
    for folder in ["work", "home"] {
        let inside = format!("/{folder}/someone");
        let found = [format!("docs/a.md:2: a path below /{folder} is of one machine only")];
        for line in [inside.clone(), format!("see `{inside}`"), format!("file://{inside}"), format!("--root={inside}")]
        {
            assert_eq!(text_breaches("docs/a.md", &format!("\n{line}\n")), found, "{line}");
        }
        assert_eq!(text_breaches("docs/fixtures/a.md", &format!("\n{inside}")).len(), 1);
        for line in [
            format!(".tribunal{inside}"),
            format!("{{root}}{inside}"),
            format!("https://example.org{inside}"),
            format!("/{folder}"),
        ] {
            assert_eq!(text_breaches("docs/a.md", &format!("{line}\n")), NONE, "{line}");
        }
    }
}

#[test]
fn lines_end_without_whitespace_and_files_with_one_newline() {
    assert_eq!(text_breaches("a.md", "a\n"), NONE);
    assert_eq!(text_breaches("a.md", ""), NONE);
    for end in ["\x20", "\t", "\r"] {
        assert_eq!(text_breaches("a.md", &format!("a{end}\nb\n")), ["a.md:1: whitespace at the end of the line"]);
    }
    for text in ["a", "a\n\n", "\n\n"] {
        assert_eq!(text_breaches("a.md", text), ["a.md: the file has to end with exactly one newline"], "{text:?}");
    }
    for path in ["a/b.snap", "crates/bmad/tests/fixtures/old/a.md"] {
        assert_eq!(text_breaches(path, "a\x20\n\n"), NONE, "{path}");
    }
}

#[test]
fn lines_of_rust_have_140_characters() {
    let line = |length: usize| format!("{}\n", "ä".repeat(length));
    assert_eq!(text_breaches("a.rs", &line(140)), NONE);
    assert_eq!(text_breaches("a.rs", &line(141)), ["a.rs:1: this line has 141 characters, at most 140 are allowed"]);
    assert_eq!(text_breaches("a.md", &line(141)), NONE);
}

#[test]
fn a_crate_begins_with_a_doc() {
    let found = "a crate begins with at least 3 lines of `//!`: what it does, what not, and where that is";
    for path in ["crates/workflows/src/lib.rs", "crates/cli/src/main.rs", "xtask/src/main.rs"] {
        assert_eq!(text_breaches(path, "//! One.\n//!\n//! Three.\nuse a;\n"), NONE);
        assert_eq!(text_breaches(path, "//! One.\n//! Two.\n\n//! Four.\n"), [format!("{path}: {found}")]);
        assert_eq!(text_breaches(path, "use a;\n//! One.\n//! Two.\n//! Three.\n"), [format!("{path}: {found}")]);
    }
    assert_eq!(text_breaches("crates/workflows/src/rules/main.rs", "use a;\n"), NONE);
}

#[test]
fn binary_files_are_not_text() {
    assert_eq!(texts::as_text(b"a\0b"), None);
    assert_eq!(texts::as_text(&[0xff, 0xfe]), None);
    assert_eq!(texts::as_text(b"a"), Some("a"));
}

#[test]
fn an_exception_covers_its_item_and_is_reported_when_stale() -> Result<()> {
    let sources = [parse_source("a.rs", &format!("struct A({});", "u8,".repeat(13)))?];
    let findings = sizes::check_sizes(&sources[0], &TestFiles::from_sources(&sources));
    let entry = |path: &str, item: &str, rule: &str| {
        format!(
            "[[exception]]\npath = \"{path}\"\nitem = \"{item}\"\nrule = \"{rule}\"\nreason = \"a foreign format\"\n"
        )
    };
    let mut exceptions = SizeExceptions::parse(&entry("a.rs", "A", "fields"));
    assert!(findings.iter().all(|finding| exceptions.covers_finding(finding)));
    assert_eq!(format_breaches(exceptions.into_breaches()), NONE);

    for (path, item, rule) in [("b.rs", "A", "fields"), ("a.rs", "B", "fields"), ("a.rs", "A", "function")] {
        let mut exceptions = SizeExceptions::parse(&entry(path, item, rule));
        assert!(!findings.iter().any(|finding| exceptions.covers_finding(finding)));
        let stale = format!(
            "xtask/tidy-exceptions.toml: the exception for `{item}` in \"{path}\" ({rule}) no longer matches anything: take it out"
        );
        assert_eq!(format_breaches(exceptions.into_breaches()), [stale]);
    }
    Ok(())
}

#[test]
fn an_incomplete_exception_is_reported() {
    let file = "xtask/tidy-exceptions.toml:";
    let found = |text: &str| -> Vec<String> {
        let all = format_breaches(SizeExceptions::parse(text).into_breaches());
        all.into_iter().filter(|breach| !breach.contains("no longer matches")).collect()
    };
    let entry = "[[exception]]\npath = \"a.rs\"\nitem = \"A\"\n";
    for reason in ["", "reason = \" \""] {
        let text = format!("{entry}rule = \"fields\"\n{reason}");
        assert_eq!(found(&text), [format!("{file} the exception for `A` in \"a.rs\" has no reason")]);
    }
    assert_eq!(
        found(&format!("{entry}rule = \"size\"\nreason = \"r\"")),
        [format!(
            "{file} the exception for `A` in \"a.rs\" has the rule \"size\", known are file, function, params, fields"
        )]
    );
    assert_eq!(
        found(&format!("{entry}rule = \"file\"\nreason = \"r\"\nuntil = \"then\"")),
        [format!(
            "{file} the exception for `A` in \"a.rs\" has a key `until` that is not known, only path, item, rule, reason"
        )]
    );
    assert_eq!(found("[exceptions]"), [format!("{file} `exceptions` is not known here, only [[exception]]")]);
    assert_eq!(found("what?").len(), 1);
}

/// Checks all rules together on a directory.
#[test]
fn tidy_checks_sources_texts_exceptions_and_dependencies() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let fields = "u8,".repeat(13);
    let exception = |item: &str| {
        format!(
            "[[exception]]\npath = \"crates/workflows/src/a.rs\"\nitem = \"{item}\"\nrule = \"fields\"\nreason = \"r\"\n"
        )
    };
    for (path, text) in [
        ("Cargo.toml", "[workspace]\n".to_owned()),
        ("README.md", "no newline".to_owned()),
        ("target/ignored.md", "no newline".to_owned()),
        (
            "crates/workflows/Cargo.toml",
            "[package]\nname = \"tribunal-workflows\"\n[dependencies]\ntokio = \"1\"\n".to_owned(),
        ),
        ("crates/workflows/src/lib.rs", "//! One.\n//! Two.\n//! Three.\n#![no_std]\nmod a;\n".to_owned()),
        ("crates/workflows/src/a.rs", format!("struct A({fields});\nstruct B({fields});\nfn f() {{ todo!() }}\n")),
        ("xtask/tidy-exceptions.toml", format!("{}{}", exception("A"), exception("C"))),
    ] {
        let file_path = directory.path().join(path);
        fs::create_dir_all(file_path.parent().unwrap_or(directory.path()))?;
        fs::write(file_path, text)?;
    }
    let found = format_breaches(super::check_repository(directory.path())?);
    let starts = [
        "README.md: the file has to end",
        "crates/workflows/Cargo.toml: tribunal-workflows may not depend on tokio",
        "crates/workflows/src/a.rs:2: `B` has 13 fields",
        "crates/workflows/src/a.rs:3: `todo!` is left over",
        "xtask/tidy-exceptions.toml: the exception for `C`",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (found, start) in found.iter().zip(starts) {
        assert!(found.starts_with(start), "{found}");
    }
    Ok(())
}

#[test]
fn tuple_parameters_marks_and_large_cycles_are_refused() -> Result<()> {
    let files = [
        ("crates/a/src/lib.rs", "mod one; mod two; mod three; mod four;"),
        ("crates/a/src/one.rs", "use crate::two::Two; fn pair((a, b): (u8, u8)) {}"),
        ("crates/a/src/two.rs", "use crate::three::Three;"),
        ("crates/a/src/three.rs", "use crate::four::Four; fn next(host: Host) { host.patched(\"x\"); }"),
        ("crates/a/src/four.rs", "use crate::one::One;"),
        ("crates/testkit/src/lib.rs", "fn pair(pair: (u8, u8)) {}"),
    ];
    let sources = files.iter().map(|(path, text)| parse_source(path, text)).collect::<Result<Vec<_>>>()?;
    let tree = RepositoryTree { files: Vec::new(), sources, unreadable: Vec::new() };
    assert_eq!(
        format_breaches(structure::check_structure(&tree)),
        [
            "crates/a/src/one.rs:1: a parameter of `pair` is a tuple: make it a struct with field names, or several parameters",
            "crates/a/src/three.rs:1: the mark `x` keeps journals of earlier builds alive, and none was released: \
             change the format instead",
            "crates/a/src/four.rs: 4 files need each other: move a type down or hand a value in \
             (crates/a/src/four.rs, crates/a/src/one.rs, crates/a/src/three.rs, crates/a/src/two.rs)",
        ]
    );
    Ok(())
}

const NAME_RULES: &str = "[[functions]]\nreason = 'a constructor'\nnames = ['new', 'stale']\n\
    [shared_types]\nOrigin = 'one concept'\n[replaced_types]\nDesk = 'it is the `Replayer`'\n\
    [replaced_words]\nnobody = 'name who'\n";

#[test]
fn names_that_say_too_little_are_refused() -> Result<()> {
    let files = [
        (
            "crates/a/src/lib.rs",
            "pub struct Desk;\nimpl Desk {\n    pub fn new() {}\n    pub(crate) async fn of() {}\n    fn at() {}\n}\n\
             pub const fn up() {}\npub fn find_it() {}\n#[cfg(test)]\nmod tests { pub fn told() {} }\n",
        ),
        (
            "crates/a/src/two.rs",
            "// Nobody reads it.\npub enum Pair {}\npub(super) struct Origin;\nconst TEXT: &str = \"nobody\";\n",
        ),
        ("crates/b/src/lib.rs", "/// Two of them.\npub struct Pair;\npub type Origin = u8;\n"),
        // The same type with its parameters, and another type.
        (
            "crates/c/src/lib.rs",
            "pub type Pair<T> = a::two::Pair<u8, T>;\npub type Up = a::Down<Up>;\npub struct Up;\n",
        ),
        ("crates/b/tests/all.rs", "pub fn told() {}\npub struct Pair;\n"),
    ];
    let sources = files.iter().map(|(path, text)| parse_source(path, text)).collect::<Result<Vec<_>>>()?;
    let repository = RepositoryTree { files: Vec::new(), sources, unreadable: Vec::new() };
    let too_short = "has a name of one word: say what it does to what, or give a reason in xtask/names.toml";
    assert_eq!(
        format_breaches(NameRules::parse(NAME_RULES).check_names(&repository)),
        [
            format!("crates/a/src/lib.rs:4: the public function `of` {too_short}"),
            format!("crates/a/src/lib.rs:7: the public function `up` {too_short}"),
            "xtask/names.toml: no public function is called `stale`: remove the entry".into(),
            "crates/a/src/two.rs:2: the public type `Pair` shares its name with crates/b/src/lib.rs:2".into(),
            "crates/c/src/lib.rs:2: the public type `Up` shares its name with crates/c/src/lib.rs:3".into(),
            "crates/a/src/lib.rs:1: `Desk` is not called that any more: it is the `Replayer`".into(),
            "crates/a/src/two.rs:1: a comment says `Nobody`: name who".into(),
        ]
    );
    Ok(())
}

#[test]
fn phrases_that_users_had_to_translate_are_refused() -> Result<()> {
    let rules = NameRules::parse("[replaced_phrases]\n'[!]' = 'write error:'\nmend = 'say fix'\n");
    let text = "//! Mend comes from amend.\n/// How to mend it.\nfn a() {\n    print(\"[!] no\");\n    \
                print(\"amended; see what mends it\");\n    print(\"first\\n\\\n     then mend it\");\n}\n\
                #[cfg(test)]\nmod tests { const A: &str = \"[!]\"; }\n";
    let sources = vec![parse_source("crates/a/src/lib.rs", text)?];
    let repository = RepositoryTree { files: Vec::new(), sources, unreadable: Vec::new() };
    assert_eq!(
        format_breaches(rules.check_names(&repository)),
        [
            "crates/a/src/lib.rs:4: users read `[!]` here: write error:",
            "crates/a/src/lib.rs:7: users read `mend` here: say fix",
        ]
    );
    let page = "# How\n\nMend it.\n";
    assert_eq!(format_breaches(rules.check_page("docs/a.md", page)), ["docs/a.md:3: users read `mend` here: say fix"]);
    for other_path in ["docs/decisions.md", "docs/a.py", "crates/a/README.md"] {
        assert_eq!(format_breaches(rules.check_page(other_path, page)), Vec::<String>::new());
    }
    Ok(())
}

#[test]
fn a_broken_list_of_names_is_a_breach() -> Result<()> {
    let no_sources = RepositoryTree { files: Vec::new(), sources: Vec::new(), unreadable: Vec::new() };
    let breaches = |text: &str| format_breaches(NameRules::parse(text).check_names(&no_sources));
    assert_eq!(
        breaches("[[functions]]\nnames = []\n[replaced_words]\nx = ''\n[names]\n"),
        [
            "xtask/names.toml: no reason for ",
            "xtask/names.toml: `names` is not known here",
            "xtask/names.toml: `x` has no reason",
        ]
    );
    assert!(breaches("[")[0].starts_with("xtask/names.toml: this is not toml"));
    Ok(())
}
