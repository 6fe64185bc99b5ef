//! The content of a good answer survives every form it is written in, and no text makes the parser fail.

use proptest::prelude::*;
use serde_json::{Value, json};
use tribunal_agents::answer::{MOST_ITEMS, MOST_REMARKS, Parsed, Wanted, parse};
use tribunal_core::{
    brief::{Content, Holds, Raised, Said},
    finding::{Evidence, Severity},
};

const ALL: [Wanted; 3] = [Wanted::Findings, Wanted::Fixes, Wanted::Verdicts];

fn raised(parsed: Parsed, text: &str) -> Vec<Raised> {
    match parsed.content {
        Content::Findings { raised } => raised,
        other => panic!("{other:?} in:\n{text}"),
    }
}

fn findings(text: &str) -> Vec<Raised> {
    raised(parse(text, Wanted::Findings), text)
}

fn rulings(text: &str) -> (String, Vec<String>) {
    let parsed = parse(text, Wanted::Verdicts);
    let Content::Rulings { rulings } = parsed.content else { panic!("{:?} in:\n{text}", parsed.content) };
    let shown = rulings.iter().map(|ruling| format!("{} {}", ruling.id, ruling.holds));
    (shown.collect::<Vec<_>>().join(", "), parsed.remarks)
}

// --- good answers, and how they are written -------------------------------------------------------------------------

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[a-zA-Z]{1,9}",
        1 => "[0-9]{1,4}",
        1 => Just("é".to_string()),
        1 => Just("it's".to_string()),
        1 => Just("a: b".to_string()),
        1 => Just("x, y".to_string()),
        1 => Just("C#".to_string()),
        1 => Just("(see §2)".to_string()),
        1 => Just("<tag>".to_string()),
        1 => Just("{{name}}".to_string()),
        1 => Just("[TODO]".to_string()),
        1 => Just("50 %".to_string()),
        1 => Just("- dash".to_string()),
        1 => Just("say \"hi\" now".to_string()),
        1 => Just("C:\\dir".to_string()),
        1 => Just("&amp;".to_string()),
    ]
}

/// A sentence that begins and ends with a plain word, as sentences do.
fn sentence() -> impl Strategy<Value = String> {
    ("[A-Z][a-z]{1,6}", prop::collection::vec(word(), 0..6), "[a-z]{2,6}").prop_map(
        |(first, middle, last)| {
            let mut words = vec![first];
            words.extend(middle);
            words.push(last);
            words.join(" ")
        },
    )
}

fn severity() -> impl Strategy<Value = Severity> {
    prop::sample::select(Severity::ALL.to_vec())
}

fn finding() -> impl Strategy<Value = Raised> {
    let evidence = prop_oneof![
        3 => sentence().prop_map(|text| Evidence::Quote { text }),
        1 => ("[A-Z][a-z]{1,8}( [a-z]{2,6})?", prop::collection::vec("[a-z]{2,8}", 1..4))
            .prop_map(|(heading, terms)| Evidence::Absence { heading, terms }),
    ];
    (severity(), "[a-z]{3,9}", sentence(), evidence, prop::option::of(1u32..5000), sentence()).prop_map(
        |(severity, category, description, evidence, line, suggested_fix)| Raised {
            severity,
            category,
            description,
            evidence,
            file: None,
            line,
            suggested_fix,
        },
    )
}

fn answer() -> impl Strategy<Value = Vec<Raised>> {
    prop::collection::vec(finding(), 1..6)
}

fn item(one: &Raised) -> Value {
    let mut item =
        json!({"severity": one.severity, "category": one.category, "description": one.description});
    match &one.evidence {
        Evidence::Quote { text } => item["quote"] = json!(text),
        Evidence::Absence { heading, terms } => item["absent"] = json!({"heading": heading, "terms": terms}),
    }
    if let Some(line) = one.line {
        item["line"] = json!(line);
    }
    item["suggested_fix"] = json!(one.suggested_fix);
    item
}

fn as_json(all: &[Raised]) -> String {
    json!({"findings": all.iter().map(item).collect::<Vec<_>>()}).to_string()
}

fn as_pretty_json(all: &[Raised]) -> String {
    format!("{:#}", json!({"findings": all.iter().map(item).collect::<Vec<_>>()}))
}

/// Renders YAML whose texts are written by `write_text`.
fn as_yaml(all: &[Raised], text: impl Fn(&str) -> String) -> String {
    let mut out = String::from("findings:\n");
    for one in all {
        out.push_str(&format!("  - severity: {}\n    category: {}\n", one.severity, one.category));
        out.push_str(&format!("    description: {}\n", text(&one.description)));
        match &one.evidence {
            Evidence::Quote { text: quote } => out.push_str(&format!("    quote: {}\n", text(quote))),
            Evidence::Absence { heading, terms } => {
                let terms = terms.join(", ");
                out.push_str(&format!("    absent:\n      heading: {heading}\n      terms: [{terms}]\n"));
            }
        }
        if let Some(line) = one.line {
            out.push_str(&format!("    line: {line}\n"));
        }
        out.push_str(&format!("    suggested_fix: {}\n", text(&one.suggested_fix)));
    }
    out
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn block(text: &str) -> String {
    format!("|\n      {text}")
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

/// The same answer in all the forms in which agents print one.
fn dressings(all: &[Raised]) -> Vec<(&'static str, String)> {
    let (json, pretty) = (as_json(all), as_pretty_json(all));
    let yaml = as_yaml(all, quoted);
    let fenced = format!("```yaml\n{yaml}```\n");
    let (first, rest) = all.split_at(all.len() / 2);
    vec![
        ("bare yaml", yaml.clone()),
        ("fenced yaml", fenced.clone()),
        ("yaml blocks", as_yaml(all, block)),
        ("yaml without quotation marks", as_yaml(all, str::to_string)),
        ("typographic quotation marks", format!("```yaml\n{}```", as_yaml(all, |text| format!("“{text}”")))),
        ("yaml in prose", format!("I have read it: twice.\n\n{yaml}\nThat is all [really].\n")),
        ("fence after prose", format!("Note: see {{x}} and [y].\n\n{fenced}\nI hope this helps!")),
        ("never closed", format!("```yaml\n{yaml}")),
        ("bare json", json.clone()),
        ("fenced json", format!("```json\n{pretty}\n```")),
        ("json in prose", format!("Sure! Here you go: {json} Anything else?")),
        ("json in an envelope", json!({"type": "result", "result": fenced}).to_string()),
        ("stream of envelopes", format!("{}\n{}\n", json!({"type": "init"}), json!({"text": pretty}))),
        (
            "wrapped",
            json!({"review": {"ok": false, "data": {"findings": all.iter().map(item).collect::<Vec<_>>()}}})
                .to_string(),
        ),
        ("a list without a name", json!(all.iter().map(item).collect::<Vec<_>>()).to_string()),
        ("trailing commas", pretty.replace("}\n", "},\n").replace("\"\n", "\",\n")),
        (
            "comments",
            pretty.replace("{\n", "{ // here\n").replacen("\"findings\"", "/* mine */ \"findings\"", 1),
        ),
        ("byte order mark and carriage returns", format!("\u{feff}{}", fenced.replace('\n', "\r\n"))),
        ("tabs", yaml.replace("    ", "\t\t").replace("  - ", "\t- ")),
        ("html", escaped(&fenced)),
        ("html of json", escaped(&pretty)),
        (
            "other cases",
            yaml.replace("findings:", "Findings:")
                .replace("severity:", "Severity:")
                .replace("suggested_fix:", "Suggested Fix:"),
        ),
        (
            "synonyms",
            yaml.replace("findings:", "issues:")
                .replace("description:", "problem:")
                .replace("suggested_fix:", "recommendation:"),
        ),
        (
            "several blocks",
            format!("First:\n```yaml\n{}```\nThen:\n```yaml\n{}```\n", listed(first), listed(rest)),
        ),
        (
            "the form first",
            format!(
                "The form:\n```yaml\nfindings:\n  - severity: <high>\n    description: \"<what>\"\n    quote: \"<x>\"\n```\nMine:\n{fenced}"
            ),
        ),
        ("said twice", format!("Draft:\n{fenced}\nFinal:\n{fenced}")),
    ]
}

fn listed(some: &[Raised]) -> String {
    if some.is_empty() { "findings: []\n".to_string() } else { as_yaml(some, quoted) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_good_answer_survives_every_dress(all in answer()) {
        for (dress, text) in dressings(&all) {
            let parsed = parse(&text, Wanted::Findings);
            let remarks = parsed.remarks.join("; ");
            let read = raised(parsed, &text);
            prop_assert_eq!(&read, &all, "{}: {}\n{}", dress, remarks, text);
        }
    }

    #[test]
    fn a_good_answer_cut_anywhere_says_nothing_it_did_not_say(all in answer(), at in 0.0..1.0f64, json in any::<bool>()) {
        let text = if json { as_pretty_json(&all) } else { format!("```yaml\n{}", as_yaml(&all, quoted)) };
        let mut at = (text.len() as f64 * at) as usize;
        while !text.is_char_boundary(at) { at -= 1; }
        if let Content::Findings { raised } = parse(&text[..at], Wanted::Findings).content {
            prop_assert!(raised.len() <= all.len());
            for (read, said) in raised.iter().zip(&all) {
                prop_assert!(said.description.starts_with(&read.description), "{:?} of {:?}", read, said);
            }
            // All findings but the last one are complete.
            let whole = raised.len().saturating_sub(1);
            prop_assert_eq!(&raised[..whole], &all[..whole]);
        }
    }

    #[test]
    fn nothing_makes_it_stumble(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let text = String::from_utf8_lossy(&bytes);
        for wanted in ALL {
            parse(&text, wanted);
        }
    }

    #[test]
    fn nor_does_anything_that_looks_like_an_answer(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "findings:", "fixes:", "verdicts:", "\n", "\n  ", "- ", "description: ", "quote: ", "\"", "'", "“", "”", "{", "}",
            "[", "]", ",", ":", "#", "//", "/*", "```", "```yaml\n", "~~~\n", "|\n", ">", "&quot;", "\\", "\\u12", "\t", "F1",
            "=== begin a x ===\n", "=== end a ===\n", "<what>", "é", "\u{feff}", "\r", "&", "*a", "!!x", "---\n", "? ",
        ]), 0..80)
    ) {
        let text = pieces.concat();
        for wanted in ALL {
            parse(&text, wanted);
        }
    }

    #[test]
    fn a_broken_good_answer_is_read_or_refused(
        all in answer(), dress in 0..64usize, at in 0.0..1.0f64, length in 0..6usize, put in "[\\PC\n\"{}:,]{0,3}"
    ) {
        let dressed = dressings(&all);
        let mut chars: Vec<char> = dressed[dress % dressed.len()].1.chars().collect();
        let at = ((chars.len() as f64) * at) as usize;
        let end = (at + length).min(chars.len());
        chars.splice(at..end, put.chars());
        let text: String = chars.into_iter().collect();
        for wanted in ALL {
            parse(&text, wanted);
        }
    }
}

// --- by example -----------------------------------------------------------------------------------------------------

#[test]
fn a_bare_colon_costs_nothing() {
    let text = [
        "findings:",
        "- severity: high",
        "  description: The limit: 5 or 10? Section 2 says: both",
        "  quote: Limit: 5 (see: table)",
        "- severity: low",
        "  description: second",
        "  quote: \"He said \"no\" twice\"",
        "  suggested_fix: write",
        "    one of them: the lower",
    ];
    let found = findings(&text.join("\n"));
    assert_eq!(found[0].description, "The limit: 5 or 10? Section 2 says: both");
    assert_eq!(found[0].evidence, Evidence::Quote { text: "Limit: 5 (see: table)".into() });
    assert_eq!(found[1].evidence, Evidence::Quote { text: "He said \"no\" twice".into() });
    assert_eq!(found[1].suggested_fix, "write one of them: the lower");
}

#[test]
fn numbers_and_words_of_yaml_stay_as_they_were_written() {
    let text = "findings:\n- description: d\n  quote: 1.50\n- {description: e, absent: {heading: Off, terms: [yes, 99.90]}}\n";
    for text in [text.to_string(), format!("```yaml\n{text}```")] {
        let parsed = parse(&text, Wanted::Findings);
        assert!(!parsed.remarks.iter().any(|remark| remark.contains("well-formed")), "{:?}", parsed.remarks);
        let found = raised(parsed, &text);
        assert_eq!(found[0].evidence, Evidence::Quote { text: "1.50".into() });
        let terms = vec!["yes".to_string(), "99.90".to_string()];
        assert_eq!(found[1].evidence, Evidence::Absence { heading: "Off".into(), terms });
    }
}

#[test]
fn json_that_a_text_processor_went_over_is_read() {
    let text = "{“findings”: [{“severity”: “high”, “description”: “a “b” c”, “quote”: “q: 1”}]}";
    let found = findings(text);
    assert_eq!((found[0].severity, found[0].description.as_str()), (Severity::High, "a “b” c"));
    assert_eq!(found[0].evidence, Evidence::Quote { text: "q: 1".into() });
}

#[test]
fn one_finding_instead_of_a_list_and_lists_by_severity_or_name() {
    for text in [
        "finding:\n  severity: high\n  description: d\n  quote: q\n",
        "findings:\n  severity: high\n  description: d\n  quote: q\n",
        "severity: high\ndescription: d\nquote: q\n",
        r#"{"severity": "high", "description": "d", "quote": "q"}"#,
        r#"{"findings": {"high": [{"description": "d", "quote": "q"}]}}"#,
        r#"{"findings": {"one": {"severity": "high", "description": "d", "quote": "q"}}}"#,
    ] {
        let found = findings(&format!("```\n{text}\n```"));
        assert_eq!(
            (found.len(), found[0].severity, found[0].description.as_str()),
            (1, Severity::High, "d"),
            "{text}"
        );
    }
}

#[test]
fn severities_in_every_scale_and_with_anything_around_them() {
    for (said, severity) in [
        ("Blocker", Severity::Critical),
        ("blocking", Severity::Critical),
        ("MAJOR", Severity::High),
        ("minor", Severity::Medium),
        ("info", Severity::Low),
        ("**High** (must fix)", Severity::High),
        ("medium/high", Severity::High),
        ("gruesome", Severity::Critical),
    ] {
        let text = json!({"findings": [{"severity": said, "description": "d", "quote": "q"}]}).to_string();
        assert_eq!(findings(&text)[0].severity, severity, "{said}");
    }
}

#[test]
fn the_file_a_reviewer_named_is_read_wherever_it_stands() {
    for (key, said, file, line) in [
        ("file", "src/a.rs", Some("src/a.rs"), None),
        ("file", "`src/a.rs:12`", Some("src/a.rs"), Some(12)),
        ("path", "src/a b.rs", Some("src/a b.rs"), None),
        ("location", "src/a.rs:12", Some("src/a.rs"), Some(12)),
        ("location", "`src/a.rs`, line 12", Some("src/a.rs"), Some(12)),
        ("location", "src/a.rs#L12", Some("src/a.rs"), Some(12)),
        ("location", "Makefile", None, None),
        ("location", "section 2", None, None),
    ] {
        let item = json!({ "severity": "low", "description": "d", "quote": "q", key: said });
        let raised = findings(&json!({ "findings": [item] }).to_string());
        assert_eq!((raised[0].file.as_deref(), raised[0].line), (file, line), "{key}: {said}");
    }
    let item = json!({ "severity": "low", "description": "d", "quote": "q", "file": "src/a.rs", "line": 3,
        "location": "src/b.rs:9" });
    let raised = findings(&json!({ "findings": [item] }).to_string());
    assert_eq!((raised[0].file.as_deref(), raised[0].line), (Some("src/a.rs"), Some(3)));
}

#[test]
fn lines_as_people_name_them() {
    for (key, said, line) in [
        ("line", "7", Some(7)),
        ("line", "L7", Some(7)),
        ("lines", "7-9", Some(7)),
        ("location", "docs/prd.md:7", Some(7)),
        ("location", "prd.md, line 7", Some(7)),
        ("location", "section 2", None),
        ("location", "prd.md:intro", None),
    ] {
        let text = json!({"findings": [{"description": "d", "quote": "q", key: said}]}).to_string();
        assert_eq!(findings(&text)[0].line, line, "{key}: {said}");
    }
}

#[test]
fn a_key_said_twice_is_pointed_out() {
    let text = r#"{"findings": [{"description": "first", "description": "second", "quote": "q"}]}"#;
    let parsed = parse(text, Wanted::Findings);
    assert!(
        parsed.remarks.contains(&"item 1 says `description` twice; the later one counts".to_string()),
        "{parsed:?}"
    );
    assert_eq!(raised(parsed, text)[0].description, "second");
    let lists = "findings:\n- {description: a, quote: q}\nfindings:\n- {description: b, quote: r}\n";
    assert_eq!(findings(lists).len(), 2, "no list is lost to another");
    assert_eq!(findings(&format!("```yaml\n{lists}```")).len(), 2);
}

#[test]
fn verdicts_in_many_forms() {
    for text in [
        "```yaml\nverdicts:\n  - id: F1\n    verdict: VALID\n  \
         - {id: F2, verdict: INVALID, reason: it is there}\n  - id: F3\n    verdict: AMBIGUOUS\n```",
        r#"{"verdicts": [{"id": "F1", "verdict": "valid"}, {"id": "F2", "ruling": "Invalid", "counter_evidence": "q"},
            {"finding": "[F3]", "verdict": "unclear"}]}"#,
        "verdicts:\n  F1: VALID\n  F2: {verdict: INVALID, because: no}\n  F3: AMBIGUOUS\n",
        "rulings:\n- F1: valid\n- F2:\n    verdict: not valid\n    reason: said elsewhere\n- F3: ambiguous\n",
    ] {
        assert_eq!(rulings(text).0, "F1 valid, F2 invalid, F3 ambiguous", "{text}");
    }
}

#[test]
fn a_verdict_that_shows_nothing_or_contradicts_itself_is_doubt() {
    let (read, remarks) = rulings(
        "verdicts:\n- {id: F1, verdict: INVALID}\n- {id: F2, verdict: VALID}\n\
         - {id: F2, verdict: INVALID, reason: r}\n- {id: F3, verdict: meh}\n",
    );
    assert_eq!(read, "F1 ambiguous, F2 ambiguous, F3 ambiguous");
    insta::assert_snapshot!(remarks.join("\n"), @r"
    F1 was called invalid without counter-evidence; taken as ambiguous
    verdict `meh` on F3 is unknown and was taken as ambiguous
    F2 was called valid and invalid; taken as ambiguous
    ");
    assert_eq!(Holds::Ambiguous.as_str(), "ambiguous");
}

#[test]
fn who_says_not_fixed_did_not_fix() {
    let text = "fixes:\n- {id: F1, status: Fixed ✅}\n- {id: F2, status: not fixed}\n\
         - {id: F3, status: 'BLOCKED (needs a decision)'}\n- {id: F4, status: partially fixed}\n";
    let parsed = parse(text, Wanted::Fixes);
    let Content::Fixes { claims } = parsed.content else { panic!() };
    assert_eq!(claims.iter().map(|claim| claim.id.0).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(parsed.remarks.len(), 2, "{:?}", parsed.remarks);
}

/// Other tools took a word for a signal: `abandoned` contains `done`, and a promise in the prompt ended a loop.
#[test]
fn a_word_is_not_a_signal() {
    for status in
        ["abandoned", "undone", "prefixed", "unresolved", "will be done", "to be fixed", "LOOP_COMPLETE"]
    {
        let parsed =
            parse(&format!("fixes:\n  - id: F1\n    status: {status}\n    note: x\n"), Wanted::Fixes);
        let claims = match parsed.content {
            Content::Fixes { claims } => claims,
            _ => vec![],
        };
        let fixed = claims.iter().filter(|claim| claim.said == Said::Fixed).count();
        assert_eq!(fixed, 0, "{status}");
    }
    for text in [
        "<review-complete>ALL_ISSUES_RESOLVED</review-complete>",
        "<promise>DONE</promise>",
        "LOOP_COMPLETE",
        "All findings are fixed. Done!",
        "",
    ] {
        for wanted in [Wanted::Fixes, Wanted::Findings, Wanted::Verdicts] {
            let content = parse(text, wanted).content;
            assert!(matches!(content, Content::Unreadable { .. }), "{text}: {content:?}");
        }
    }
}

#[test]
fn a_party_s_minutes_are_read_along() {
    let text = r#"
personas: [architect, tester, security]
findings:
  - severity: medium
    description: d
    quote: q
    votes: {architect: high, tester: critical, security: low}
    dissent: "security: it is behind a wall"
  - severity: low
    description: e
    quote: r
    votes:
      - {persona: architect, severity: low}
consensus: "ship after the first is fixed"
dissent: none worth naming
"#;
    for text in [text.to_string(), format!("```yaml{text}```"), format!("We met.\n{text}\nBye.")] {
        let parsed = parse(&text, Wanted::Findings);
        let minutes = parsed.minutes.clone();
        let mut found = raised(parsed, &text);
        minutes.raise(&mut found);
        assert_eq!(found.iter().map(|one| one.severity).collect::<Vec<_>>(), [Severity::High, Severity::Low]);
        assert_eq!(minutes.personas, ["architect", "tester", "security"]);
        assert_eq!(minutes.consensus, "ship after the first is fixed");
        assert_eq!(minutes.dissent, "none worth naming");
        assert_eq!(minutes.ballots[0].dissent, "security: it is behind a wall");
        assert_eq!(minutes.ballots.len(), 2);
    }
}

#[test]
fn ten_thousand_findings_are_bounded_and_the_worst_are_kept() {
    let one = |number: usize| {
        let severity = if number == 9_999 { "critical" } else { "low" };
        json!({"severity": severity, "description": format!("number {number}"), "quote": "q"})
    };
    let items: Vec<Value> = (0..10_000).map(one).collect();
    let yaml: String = items.iter().map(|item| format!("- {item}\n")).collect();
    for text in [
        json!({ "findings": items }).to_string(),
        format!("```yaml\nfindings:\n{yaml}```\n"),
        format!("findings:\n{yaml}"),
    ] {
        let parsed = parse(&text, Wanted::Findings);
        assert_eq!(
            parsed.remarks[0],
            "of 10000 items 1000 were kept, the most severe; the others were left out"
        );
        let kept = raised(parsed, "ten thousand");
        assert_eq!(kept.len(), MOST_ITEMS);
        assert_eq!(kept.last().map(|one| one.description.as_str()), Some("number 9999"));
    }
}

#[test]
fn remarks_are_bounded_too() {
    let yaml: String = (0..500)
        .map(|number| format!("- {{description: d{number}, quote: q, severity: odd{number}}}\n"))
        .collect();
    let parsed = parse(&format!("findings:\n{yaml}"), Wanted::Findings);
    assert_eq!(parsed.remarks.len(), MOST_REMARKS + 1);
    assert_eq!(parsed.remarks.last().map(String::as_str), Some("and 470 more remarks"));
}

/// Parses a megabyte of each piece. A parser that reads its input again for every piece would need hours.
fn parse_a_megabyte_of_each(pieces: &[&str]) {
    for piece in pieces {
        let text = piece.repeat((1 << 20) / piece.len());
        parse(&text, Wanted::Findings);
        parse(&format!("```yaml\nfindings:\n{text}"), Wanted::Findings);
    }
}

#[test]
fn megabytes_of_opened_brackets_have_an_answer() {
    parse_a_megabyte_of_each(&["{", "[", "{\"a\":", "{\"a\" ", "a{, ", "{}", "findings: [\n"]);
}

#[test]
fn megabytes_of_opened_quotes_have_an_answer() {
    parse_a_megabyte_of_each(&["\"", "[\"x", "&quot;", "\\", "| ", "/*", "\n"]);
}

#[test]
fn megabytes_of_opened_blocks_have_an_answer() {
    parse_a_megabyte_of_each(&[
        "- a:\n",
        "findings:\n",
        "```\n",
        "```yaml\n- x\n",
        "=== begin a x ===\n",
        "x: |\n",
        "findings:\n- description: d\n  quote: \"x\n",
    ]);
}

#[test]
fn ten_megabytes_of_findings_have_an_answer() {
    let long = "A long story. ".repeat(70);
    let items: Vec<Value> = (0..10_000)
        .map(|number| json!({"severity": "low", "description": format!("{number} {long}"), "quote": "q"}))
        .collect();
    let json = json!({ "findings": items }).to_string();
    assert!(json.len() > 10_000_000);
    assert_eq!(findings(&json).len(), MOST_ITEMS);
    // One item is broken, so that the strict parser fails and all items are read by the list finder.
    let yaml: String = items.iter().map(|item| format!("- {item}\n")).collect();
    assert_eq!(findings(&format!("findings:\n- description: a: b\n  quote: q\n{yaml}")).len(), MOST_ITEMS);
    let one = json!({"findings": [{"description": json, "quote": yaml}]}).to_string();
    assert!(findings(&one)[0].description.len() < 5_000, "texts are bounded");
}
