use super::*;

fn parse_source(path: &str, text: &str) -> SourceFile {
    SourceFile::parse(path, text.to_owned()).expect("the sample is Rust")
}

fn measure_samples(files: &[(&str, &str)]) -> StyleFigures {
    let sources = files.iter().map(|(path, text)| parse_source(path, text)).collect();
    measure_tree(&RepositoryTree { files: Vec::new(), sources, unreadable: Vec::new() })
}

fn row_value(style: &StyleFigures, label: &str) -> String {
    style.to_rows().into_iter().find(|(known, _)| *known == label).expect("the row is there").1
}

#[test]
fn names_are_counted_outside_of_tests_only() {
    let style = measure_samples(&[(
        "crates/a/src/lib.rs",
        "/// Words in docs do not count.\nstruct One;\nstruct TwoWords;\nfn of<'life>(x: &'life u8) {}\nfn to_do() {}\nfn go() {}\n\
         fn in_two() {}\n#[cfg(test)]\nmod tests { fn of() {} fn more() {} struct Three; }\n#[test]\nfn tried() {}\n",
    )]);
    assert_eq!(row_value(&style, "functions"), "4");
    assert_eq!(row_value(&style, "functions whose name is one word"), "50 %");
    assert_eq!(row_value(&style, "types whose name is one word"), "50 %");
    // One, TwoWords, of, x, u8, to_do, go, in_two: the lifetime is not among them.
    assert_eq!(row_value(&style, "mean length of an identifier"), "3.6");
    assert_eq!(row_value(&style, "file lines p50 / p95 / max"), "7 / 7 / 7");
}

#[test]
fn tuples_are_found_as_patterns_and_as_types() {
    let style = measure_samples(&[(
        "crates/a/src/lib.rs",
        "fn one((a, b): Pair) {}\nfn two(pair: &(u8, u8)) {}\nfn three(all: Vec<(u8, u8)>, unit: ()) {}\n\
         impl A { fn four(&self, (a, b): (u8, u8), c: u8) {} }\n#[cfg(test)]\nmod tests { fn five(pair: (u8, u8)) {} }\n",
    )]);
    let names: Vec<&str> = style.tuple_parameters.iter().map(|place| place.name.as_str()).collect();
    assert_eq!(names, ["one", "two", "four"]);
}

#[test]
fn marks_are_found_by_their_call() {
    let style = measure_samples(&[(
        "crates/a/src/lib.rs",
        "fn a(h: H) { if h.patched(\"new-order\") {} }\nfn patched(change: &str) {}\n#[cfg(test)]\nfn b(h: H) { h.patched(\"x\"); }\n",
    )]);
    let names: Vec<&str> = style.patched_marks.iter().map(|place| place.name.as_str()).collect();
    assert_eq!(names, ["new-order"]);
}

#[test]
fn a_cycle_is_found_across_directories_but_not_between_a_module_and_its_submodules() {
    let cyclic = measure_samples(&[
        ("crates/a/src/lib.rs", "mod trust; mod settings;"),
        ("crates/a/src/trust.rs", "use crate::settings::Layer;"),
        ("crates/a/src/settings/mod.rs", "mod layers; pub use layers::Layer;"),
        ("crates/a/src/settings/layers.rs", "use super::Row; fn f() { vec![crate::trust::ask()] }"),
    ]);
    assert_eq!(cyclic.import_cycles.len(), 1);
    assert_eq!(
        cyclic.import_cycles[0].files,
        ["crates/a/src/settings/layers.rs", "crates/a/src/settings/mod.rs", "crates/a/src/trust.rs"]
    );
    let tree = measure_samples(&[
        ("crates/a/src/lib.rs", "mod trust; mod settings; pub struct Row;"),
        ("crates/a/src/trust.rs", "use crate::{Row, settings::{self, layers::Layer}};"),
        ("crates/a/src/settings/mod.rs", "pub mod layers; use layers::Layer; pub struct Kind;"),
        ("crates/a/src/settings/layers.rs", "use super::Kind; use crate::Row;"),
    ]);
    assert_eq!(tree.import_cycles, []);
}

#[test]
fn an_import_against_the_order_of_folders_is_found_where_folders_form_a_circle() {
    let style = measure_samples(&[
        ("crates/a/src/lib.rs", "mod plan; mod host; mod text;"),
        ("crates/a/src/plan/mod.rs", "mod steps; use crate::host::Host; use crate::text::wrap;"),
        ("crates/a/src/plan/steps.rs", "use crate::host::Host;"),
        ("crates/a/src/host.rs", "use crate::plan::Plan; use crate::text::wrap;"),
        ("crates/a/src/text.rs", "pub fn wrap() {}"),
    ]);
    assert_eq!(row_value(&style, "directories in circles"), "a 2 of 3");
    // Two files of `plan` need `host`, so the one import of `plan` is the one that is wrong.
    assert_eq!(row_value(&style, "imports against the order of directories"), "1: a 1");
    let arrows: Vec<(&str, &str)> =
        style.arrows_back().map(|arrow| (arrow.path.as_str(), arrow.imported_folder.as_str())).collect();
    assert_eq!(arrows, [("crates/a/src/host.rs", "plan")]);
}

#[test]
fn kinds_are_counted_where_they_are_named_outside_of_their_folders() {
    let table = "macro_rules! run_kinds { ($($kind:ident($order:ty);)*) => { pub enum RunOrder { $($kind($order),)* } }; }\n\
                 run_kinds! { Loop(crate::loop_run::order::LoopOrder); Story(crate::story::StoryOrder); }";
    let shared = "use crate::{runs::Host, story::StoryOrder};\n\
                  fn f(o: &RunOrder) { match o { RunOrder::Loop(_) => (), _ => drop(o.as_story()) } }\n\
                  #[cfg(test)]\nmod tests { use crate::loop_run::order::LoopOrder; }";
    let style = measure_samples(&[
        ("crates/workflows/src/runs/kinds.rs", table),
        ("crates/workflows/src/host.rs", shared),
        ("crates/workflows/src/loop_run/order.rs", "use crate::runs::kinds::RunOrder; fn g() { RunOrder::Loop(o) }"),
        ("crates/cli/src/commands/loops.rs", "use tribunal_workflows::loop_run::order::LoopOrder;"),
        (
            "crates/cli/src/commands/stories/list.rs",
            "use tribunal_workflows::{loop_run::order::LoopOrder, story::StoryOrder};",
        ),
        ("crates/cli/src/context.rs", "mod story; use crate::story::Story;"),
    ]);
    let mentions: Vec<String> =
        style.kind_mentions.iter().map(|place| format!("{}:{} {}", place.path, place.line, place.name)).collect();
    assert_eq!(
        mentions,
        [
            "crates/workflows/src/host.rs:1 crate::story",
            "crates/workflows/src/host.rs:2 RunOrder::Loop",
            "crates/workflows/src/host.rs:2 as_story",
            "crates/cli/src/commands/stories/list.rs:1 tribunal_workflows::loop_run",
        ]
    );
    assert_eq!(row_value(&style, "mentions of kinds outside their directories"), "4: cli 1, workflows 3");
}

#[test]
fn tools_and_tests_are_no_shipped_lines() {
    let code = "fn a() {}\n\n// A comment.\nfn b() {}\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n";
    let style = measure_samples(&[("crates/a/src/lib.rs", code), ("xtask/src/lib.rs", code)]);
    assert_eq!(row_value(&style, "lines of code that are shipped"), "2");
}

#[test]
fn test_code_is_not_production_code() {
    assert!(is_production("crates/workflows/src/review/mod.rs"));
    assert!(!is_production("crates/workflows/tests/workflows/merge.rs"));
    assert!(!is_production("crates/runner/src/copies/tests/mod.rs"));
    assert!(!is_production("crates/agents/src/jsonc/tests.rs"));
    assert!(!is_production("crates/testkit/src/lib.rs"));
}
