//! Ledgers in every dialect: what is read, what is appended, what is closed.

use proptest::prelude::*;

use super::*;

fn render_ledger(item_text: &str) -> String {
    let items = read_ledger(item_text).items.into_iter().map(|item| {
        let DeferredItem {
            id,
            text: item_text,
            source,
            evidence,
            place,
            severity,
            status,
            resolution,
            done,
            line,
            shape,
        } = item;
        let optional_fields = [
            ("id", id),
            ("from", source),
            ("why", evidence),
            ("at", place),
            ("sev", severity),
            ("is", status),
            ("by", resolution),
        ];
        let optional_fields: String = optional_fields
            .into_iter()
            .filter_map(|(field_name, field_value)| Some(format!(" {field_name}={:?}", field_value?)))
            .collect();
        format!("{line} {shape:?} {} {item_text:?}{optional_fields}", if done { "x" } else { "-" })
    });
    items.collect::<Vec<_>>().join("\n")
}

#[test]
fn an_item_goes_below_the_heading_of_its_story() {
    let ledger_text =
        "# Deferred Work\n\n## Deferred from: code review of 1-2-log-in (2026-01-02)\n\n- old\n\n## Other\n\n- x\n";
    let new_item =
        |source: &str| NewDeferredItem { evidence: "e".into(), ..new_item(source, &format!("about {source}")) };
    let new_text = add_items(ledger_text, &[new_item("out/1-2-log-in.md"), new_item("out/9-9-z.md")]);
    assert_eq!(
        new_text,
        "# Deferred Work\n\n## Deferred from: code review of 1-2-log-in (2026-01-02)\n\n- old\n\
         - source_spec: `out/1-2-log-in.md`\n  summary: about out/1-2-log-in.md\n  evidence: e\n\n## Other\n\n- x\n\n\
         - source_spec: `out/9-9-z.md`\n  summary: about out/9-9-z.md\n  evidence: e\n"
    );
    assert_eq!(add_items(&new_text, &[new_item("out/1-2-log-in.md")]), new_text, "the same item is added once");
}

const LEDGER: &str = "# Deferred Work\n\n\
    - source_spec: `spec-1-2-x.md`\n  summary: The cache: never cleared\n  evidence: seen in\n    the log\n\
                      - source_spec: `b.md`\n  summary: two\n\n## Deferred from: code review of story-3.3 (2026-03-18)\n\n\
                      - Old cookie [src/c.rs:1] — was there: before\n  more of it\n- [x] done one\n* ~~struck~~\n\n```\n- no\n```\n\n\
                      ## Tech debt\n\nSome prose.\n- a note\n1. no bullet\n\n### DW-7: Slow start\n\
                          - **Severity:** high\n- location: src/a.rs:4\n\
                      status: done 2026-01-01\norigin: story 1.2\nIt takes long.\n\n- [DW-8] with an id\n";

#[test]
fn every_shape_of_the_ledger_is_read() {
    insta::assert_snapshot!(render_ledger(LEDGER), @r#"
    3 Entry - "The cache: never cleared" from="spec-1-2-x.md" why="seen in\nthe log"
    7 Entry - "two" from="b.md"
    12 Review - "Old cookie [src/c.rs:1] — was there: before\nmore of it" from="code review of story-3.3 (2026-03-18)" at="src/c.rs:1"
    14 Review x "done one" from="code review of story-3.3 (2026-03-18)"
    15 Review x "~~struck~~" from="code review of story-3.3 (2026-03-18)"
    24 Free - "a note"
    27 Numbered x "Slow start" id="DW-7" from="story 1.2" why="It takes long." at="src/a.rs:4" sev="high" is="done 2026-01-01"
    34 Free - "with an id" id="DW-8"
    "#);
}

fn new_item(source: &str, summary: &str) -> NewDeferredItem {
    NewDeferredItem {
        source: source.into(),
        summary: summary.into(),
        evidence: "it\nis so".into(),
        severity: String::new(),
        place: String::new(),
    }
}

#[test]
fn new_items_are_appended_once() {
    assert_eq!(
        add_items("", &[new_item("a.md", "one"), new_item("a.md", "one")]),
        "# Deferred Work\n\n- source_spec: `a.md`\n  summary: one\n  evidence: it is so\n"
    );
    assert_eq!(
        add_items("# D\r\n- x", &[new_item("a.md", "one")]),
        "# D\r\n- x\r\n\r\n- source_spec: `a.md`\r\n  summary: one\r\n  evidence: it is so\r\n"
    );
    let extended = add_items(LEDGER, &[new_item("b.md", "two"), new_item("b.md", "three")]);
    assert!(extended.starts_with(LEDGER));
    assert_eq!(read_ledger(&extended).items.len(), read_ledger(LEDGER).items.len() + 1);
    assert_eq!(add_items(&extended, &[new_item("b.md", "three")]), extended);
    assert_eq!(add_items(LEDGER, &[new_item("b.md", " ")]), LEDGER);
}

#[test]
fn an_entry_gets_a_severity_where_the_ledger_has_some() {
    let severe_item =
        NewDeferredItem { severity: "high".into(), place: "src/a.rs:1".into(), ..new_item("a.md", "one") };
    let plain_ledger = "- source_spec: `b.md`\n  summary: two\n";
    assert_eq!(
        add_items(plain_ledger, std::slice::from_ref(&severe_item)),
        format!("{plain_ledger}\n- source_spec: `a.md`\n  summary: one\n  evidence: it is so\n")
    );
    let severe_ledger = format!("{plain_ledger}  severity: low\n");
    assert_eq!(
        add_items(&severe_ledger, &[severe_item, new_item("a.md", "three")]),
        format!(
            "{severe_ledger}\n- source_spec: `a.md`\n  summary: one\n  evidence: it is so\n  severity: high\n\
             - source_spec: `a.md`\n  summary: three\n  evidence: it is so\n"
        )
    );
}

#[test]
fn a_ledger_with_ids_gets_items_with_ids() {
    let ledger_text = "# Deferred Work\r\n\r\n### DW-9: Slow start\r\nstatus: open\r\n\r\n- [ ] [DW-11] x";
    let severe_item = NewDeferredItem {
        severity: "high".into(),
        place: "src/a.rs:1".into(),
        ..new_item("out/1-2-x.md", "It leaks.")
    };
    let new_text = add_items(ledger_text, &[severe_item.clone(), new_item("", "~~ drops `<!--` and -->")]);
    assert_eq!(
        new_text,
        format!(
            "{ledger_text}\r\n\r\n### DW-12: It leaks.\r\norigin: out/1-2-x.md\r\nlocation: src/a.rs:1\r\n\
             severity: high\r\nreason: it is so\r\nstatus: open\r\n\r\n\
             ### DW-13: drops `<!--` and --&gt;\r\norigin:\r\nreason: it is so\r\nstatus: open\r\n"
        )
    );
    assert_eq!(add_items(&new_text, &[severe_item, new_item("", "~~ drops `<!--` and -->")]), new_text);
    insta::assert_snapshot!(render_ledger(&new_text), @r#"
    3 Numbered - "Slow start" id="DW-9" is="open"
    6 Free - "x" id="DW-11"
    8 Numbered - "It leaks." id="DW-12" from="out/1-2-x.md" why="it is so" at="src/a.rs:1" sev="high" is="open"
    15 Numbered - "drops `<!--` and --&gt;" id="DW-13" from="" why="it is so" is="open"
    "#);
    assert_eq!(add_items(ledger_text, &[new_item("a.md", "~~")]), ledger_text, "there is no title for a heading");
}

#[test]
fn an_item_is_known_by_its_file_and_its_words() {
    let ledgers = [
        "- source_spec: `out/spec-1-2-x.md`\n  summary: The `cache` is\n    never cleared\n",
        "### DW-1: The cache is never cleared.\norigin: spec-1-2-x\n",
    ];
    for ledger_text in ledgers {
        for (source, summary) in [
            ("other/Spec-1-2-x.md", "the cache is  never cleared"),
            ("`spec-1-2-x.md`", "\"The cache is never cleared!\""),
        ] {
            assert_eq!(add_items(ledger_text, &[new_item(source, summary)]), ledger_text, "{source} {summary}");
        }
        for (source, summary) in [
            ("spec-1-3-x.md", "The cache is never cleared"),
            ("spec-1-2-x.md", "The cache is never filled"),
            ("", "The cache is never cleared"),
        ] {
            assert_ne!(add_items(ledger_text, &[new_item(source, summary)]), ledger_text, "{source} {summary}");
        }
    }
}

fn close_ids(ledger_text: &str, ids: &[&str]) -> ClosedLedger {
    let ids: Vec<String> = ids.iter().map(|id| id.to_string()).collect();
    let closing = LedgerClosing { date: "2026-01-02".into(), resolution: "fixed by\n1-2-x".into() };
    let closed_ledger = close_items(ledger_text, &ids, &closing);
    let closed_again = close_items(&closed_ledger.ledger_text, &ids, &closing);
    assert_eq!(closed_again.ledger_text, closed_ledger.ledger_text, "closing twice changes nothing");
    assert_eq!((closed_again.closed, &closed_again.unknown), (Vec::new(), &closed_ledger.unknown));
    closed_ledger
}

#[test]
fn an_id_that_a_new_item_got_is_not_one_to_close() {
    let ids = ["DW-5", "dw-06", "7"].map(str::to_string);
    let ledger_text = "### DW-5: A\norigin: x.md\nstatus: open\n";
    let new_items = [new_item("out/1-2-x.md", "Slow.")];
    assert_eq!(ids_of_others(ledger_text, &ids, &new_items), ids, "it has no id yet");
    let ledger_text = add_items(ledger_text, &new_items);
    assert_eq!(ids_of_others(&ledger_text, &ids, &new_items), ["DW-5", "7"]);
    assert_eq!(ids_of_others(&ledger_text, &ids, &[new_item("out/1-3-y.md", "Slow.")]), ids);
}

#[test]
fn a_numbered_item_is_closed_in_its_own_form() {
    for (ledger_text, expected) in [
        (
            "### DW-5: A\norigin: x\nstatus: open\nseverity: low\n",
            "### DW-5: A\norigin: x\nstatus: done 2026-01-02\nresolution: fixed by 1-2-x\nseverity: low\n",
        ),
        (
            "### DW-5: A\r\n\r\n- **Status:** open (see B)  \r\n- **Severity:** low",
            "### DW-5: A\r\n\r\n- **Status:** done 2026-01-02  \r\n- **Resolution:** fixed by 1-2-x\r\n- **Severity:** low",
        ),
        (
            "### DW-5: A\n* **Status**: `open` <!-- why\nnot? -->\n",
            "### DW-5: A\n* **Status**: `done 2026-01-02` <!-- why\nnot? -->\n* **Resolution**: fixed by 1-2-x\n",
        ),
        ("### DW-5: A\n**Status: open**", "### DW-5: A\n**Status: done 2026-01-02**\nresolution: fixed by 1-2-x"),
        (
            "### dw-5: A\nstatus:\nresolution: none yet\n",
            "### dw-5: A\nstatus: done 2026-01-02\nresolution: fixed by 1-2-x\n",
        ),
        (
            "### DW-5: A\n- reason: long\n  and longer\n\nIt is slow.\n",
            "### DW-5: A\n- reason: long\n  and longer\n- status: done 2026-01-02\n- resolution: fixed by 1-2-x\n\nIt is slow.\n",
        ),
        (
            "### DW-5: A\n\nIt is slow.\n\n## Other\n",
            "### DW-5: A\n\nIt is slow.\n\nstatus: done 2026-01-02\nresolution: fixed by 1-2-x\n\n## Other\n",
        ),
        ("### DW-5: A", "### DW-5: A\nstatus: done 2026-01-02\nresolution: fixed by 1-2-x"),
    ] {
        let closed_ledger = close_ids(ledger_text, &["5"]);
        assert_eq!(closed_ledger.ledger_text, expected);
        assert_eq!(closed_ledger.closed, ["DW-5"], "{ledger_text:?}");
        let items = read_ledger(&closed_ledger.ledger_text).items;
        assert!(items[0].done && items[0].text == "A", "{ledger_text:?}");
        assert_eq!(items[0].resolution.as_deref(), Some("fixed by 1-2-x"), "{ledger_text:?}");
    }
}

#[test]
fn a_bullet_is_closed_by_its_box_or_at_its_end() {
    for (ledger_text, expected) in [
        ("- [ ] [DW-8] a [ ]\n- [ ] b\n", "- [x] [DW-8] a [ ]\n- [ ] b\n"),
        ("* [DW-8] a  \n* b\n", "* [DW-8] a — done 2026-01-02  \n* b\n"),
        ("- DW-8: a\r\n  more\r\n  severity: low", "- DW-8: a\r\n  more — done 2026-01-02\r\n  severity: low"),
        ("- [DW-8] a\n  status: open\n", "- [DW-8] a\n  status: done 2026-01-02\n"),
        ("### DW-7: b\nstatus: open\n- [ ] DW-8 a\n", "### DW-7: b\nstatus: open\n- [x] DW-8 a\n"),
    ] {
        let closed_ledger = close_ids(ledger_text, &["dw-8", "DW-008"]);
        assert_eq!(closed_ledger.ledger_text, expected);
        assert_eq!((closed_ledger.closed, closed_ledger.unknown), (vec!["DW-8".to_string()], vec![]));
    }
}

#[test]
fn items_that_are_done_or_unknown_stay_as_they_are() {
    let ledger_text = "### DW-1: A\nstatus: closed: see B\n\n### ~~DW-2: B~~\n\n- [x] [DW-3] c\n- ~~[DW-4] d~~\n\
                       - [DW-5] e — done 2025-01-02\n- [DW-6]\n```\n- [DW-7] f\n```\n- see DW-8\n";
    let closed_ledger = close_ids(ledger_text, &["DW-1", "2", "dw-3", "DW-4", "DW-5", "DW-6", "7", "DW-8", "x", "x"]);
    assert_eq!(closed_ledger.ledger_text, ledger_text);
    assert_eq!((closed_ledger.closed, closed_ledger.unknown.join(" ")), (vec![], "DW-6 7 DW-8 x".to_string()));
}

#[test]
fn an_id_that_several_items_have_closes_none_of_them() {
    let ledger_text = "### DW-5: A\nstatus: open\n\n### DW-05: B\nstatus: done\n\n- [ ] [DW-6] c\n";
    let closed_ledger = close_ids(ledger_text, &["dw-5", "5", "DW-6"]);
    assert_eq!(closed_ledger.ledger_text, ledger_text.replace("- [ ] [DW-6]", "- [x] [DW-6]"));
    assert_eq!((closed_ledger.closed, closed_ledger.ambiguous), (vec!["DW-6".to_string()], vec!["DW-5".to_string()]));
    let all_done = close_ids("- [x] [DW-1] a\n- [x] [DW-1] b\n", &["1"]);
    assert_eq!((all_done.closed, all_done.ambiguous), (vec![], vec![]), "there is nothing to close");
}

/// The lines of random ledgers.
const LEDGER_LINES: &[&str] = &[
    "### DW-1: a",
    "### DW-2: b <!-- why",
    "### DW-3",
    "### ~~DW-4: d~~",
    "- [ ] [DW-1] e",
    "- [DW-2] f",
    "- [DW-5]",
    "* DW-6: g <!-- h",
    "- source_spec: `x.md`",
    "  summary: i",
    "- j",
    "status: open",
    "status:",
    "- **Status:** open",
    "  status: in work <!-- k",
    "  - status: done 2025-01-02",
    "resolution: none",
    "severity: high",
    "- location: src/a.rs:1",
    "prose",
    "  more",
    "-->",
    "<!-- l -->",
    "```",
    "## Deferred from: m",
    "## Other",
    "",
    "",
];

proptest! {
    #[test]
    fn any_ledger_keeps_what_it_has(
        text in "(?s)(\u{feff})?([-*#:`~\\[\\] \r\n aé]|- source_spec: |summary: |## Deferred from: |### DW-1: |status: |```\n){0,40}",
        summary in "[a-z][a-z:`#-]{0,12}"
    ) {
        let with = add_items(&text, &[new_item("s.md", &summary)]);
        prop_assert!(with.starts_with(&text));
        // In an open block of code nothing is an item.
        if !text.contains("```") {
            let last = read_ledger(&with).items.pop().and_then(|item| item.source);
            prop_assert_eq!(last.as_deref(), Some("s.md"));
            prop_assert_eq!(add_items(&with, &[new_item("s.md", &summary)]), with);
        }
    }

    #[test]
    fn closing_items_changes_no_other_item(
        lines in prop::collection::vec(prop::sample::select(LEDGER_LINES), 0..16),
        numbers in prop::collection::vec(0usize..8, 0..4),
        line_ending in prop::sample::select(vec!["\n", "\r\n"]),
        has_final_newline in any::<bool>()
    ) {
        let final_newline = if has_final_newline { line_ending } else { "" };
        let text = format!("{}{final_newline}", lines.join(line_ending));
        let ids: Vec<String> = numbers.iter().map(|number| format!("DW-{number}")).collect();
        let closing = LedgerClosing { date: "2026-01-02".into(), resolution: "fixed <!-- by --> x".into() };
        let closed_ledger = close_items(&text, &ids, &closing);
        let (before, after) = (read_ledger(&text).items, read_ledger(&closed_ledger.ledger_text).items);
        prop_assert_eq!(before.len(), after.len(), "{:?}", closed_ledger.ledger_text);
        for (old_item, new_item) in before.into_iter().zip(after) {
            let is_closed = |id: &String| ids.contains(id) && !closed_ledger.ambiguous.contains(id);
            let is_asked_for = old_item.id.as_ref().is_some_and(is_closed);
            prop_assert_eq!(new_item.done, old_item.done || is_asked_for, "{:?}", closed_ledger.ledger_text);
            if is_asked_for && !old_item.done {
                prop_assert_eq!(new_item.id, old_item.id);
            } else {
                prop_assert_eq!(DeferredItem { line: old_item.line, ..new_item }, old_item);
            }
        }
        let closed_again = close_items(&closed_ledger.ledger_text, &ids, &closing);
        prop_assert_eq!(closed_again, ClosedLedger { closed: Vec::new(), ..closed_ledger });
    }
}
