//! The content of a good answer survives every form it is written in, and no text makes the parser fail.

use proptest::prelude::*;
use serde_json::{Value, json};
use tribunal_agents::answer::{AnswerKind, MAX_ITEMS, MAX_REMARKS, ParsedAnswer, parse_answer};
use tribunal_engine::ids::FindingId;
use tribunal_workflows::{
    findings::finding::{Evidence, Severity},
    tasks::{
        brief::{AnswerContent, RaisedFinding},
        claims::{ChallengeVerdict, ClaimStatus, UnknownWord},
    },
};

const ALL_KINDS: [AnswerKind; 3] = [AnswerKind::Findings, AnswerKind::Fixes, AnswerKind::Verdicts];

fn expect_findings(parsed_answer: ParsedAnswer, answer_text: &str) -> Vec<RaisedFinding> {
    match parsed_answer.content {
        AnswerContent::Findings { raised } => raised,
        other_content => panic!("{other_content:?} in:\n{answer_text}"),
    }
}

fn parse_findings(answer_text: &str) -> Vec<RaisedFinding> {
    expect_findings(parse_answer(answer_text, AnswerKind::Findings), answer_text)
}

fn parse_rulings(answer_text: &str) -> (String, Vec<String>) {
    let parsed_answer = parse_answer(answer_text, AnswerKind::Verdicts);
    let AnswerContent::Rulings { rulings, .. } = parsed_answer.content else {
        panic!("{:?} in:\n{answer_text}", parsed_answer.content)
    };
    let rendered_rulings = rulings.iter().map(|ruling| format!("{} {}", ruling.id, ruling.holds));
    (rendered_rulings.collect::<Vec<_>>().join(", "), parsed_answer.remarks)
}

// --- good answers, and how they are written -------------------------------------------------------------------------

fn any_word() -> impl Strategy<Value = String> {
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
fn any_sentence() -> impl Strategy<Value = String> {
    ("[A-Z][a-z]{1,6}", prop::collection::vec(any_word(), 0..6), "[a-z]{2,6}").prop_map(
        |(first_word, middle_words, last_word)| {
            let mut sentence_words = vec![first_word];
            sentence_words.extend(middle_words);
            sentence_words.push(last_word);
            sentence_words.join(" ")
        },
    )
}

fn any_severity() -> impl Strategy<Value = Severity> {
    prop::sample::select(Severity::ALL.to_vec())
}

fn any_finding() -> impl Strategy<Value = RaisedFinding> {
    let any_evidence = prop_oneof![
        3 => any_sentence().prop_map(|text| Evidence::Quote { text }),
        1 => ("[A-Z][a-z]{1,8}( [a-z]{2,6})?", prop::collection::vec("[a-z]{2,8}", 1..4))
            .prop_map(|(heading, terms)| Evidence::Absence { heading, terms }),
    ];
    (any_severity(), "[a-z]{3,9}", any_sentence(), any_evidence, prop::option::of(1u32..5000), any_sentence()).prop_map(
        |(severity, category, description, evidence, line_number, suggested_fix)| RaisedFinding {
            severity,
            category,
            description,
            evidence,
            file: None,
            line: line_number,
            suggested_fix,
        },
    )
}

fn any_answer() -> impl Strategy<Value = Vec<RaisedFinding>> {
    prop::collection::vec(any_finding(), 1..6)
}

fn finding_to_json(raised_finding: &RaisedFinding) -> Value {
    let mut json_item = json!({
        "severity": raised_finding.severity, "category": raised_finding.category, "description": raised_finding.description,
    });
    match &raised_finding.evidence {
        Evidence::Quote { text: answer_text } => json_item["quote"] = json!(answer_text),
        Evidence::Absence { heading, terms } => json_item["absent"] = json!({"heading": heading, "terms": terms}),
        Evidence::Check { .. } => unreachable!("no agent raises it"),
    }
    if let Some(line_number) = raised_finding.line {
        json_item["line"] = json!(line_number);
    }
    json_item["suggested_fix"] = json!(raised_finding.suggested_fix);
    json_item
}

fn as_json(all_findings: &[RaisedFinding]) -> String {
    json!({"findings": all_findings.iter().map(finding_to_json).collect::<Vec<_>>()}).to_string()
}

fn as_pretty_json(all_findings: &[RaisedFinding]) -> String {
    format!("{:#}", json!({"findings": all_findings.iter().map(finding_to_json).collect::<Vec<_>>()}))
}

/// Renders YAML whose texts are written by `write_text`.
fn as_yaml(all_findings: &[RaisedFinding], write_text: impl Fn(&str) -> String) -> String {
    let mut yaml_text = String::from("findings:\n");
    for raised_finding in all_findings {
        yaml_text.push_str(&format!(
            "  - severity: {}\n    category: {}\n",
            raised_finding.severity, raised_finding.category
        ));
        yaml_text.push_str(&format!("    description: {}\n", write_text(&raised_finding.description)));
        match &raised_finding.evidence {
            Evidence::Quote { text: quote_text } => {
                yaml_text.push_str(&format!("    quote: {}\n", write_text(quote_text)))
            }
            Evidence::Absence { heading, terms } => {
                let terms = terms.join(", ");
                yaml_text.push_str(&format!("    absent:\n      heading: {heading}\n      terms: [{terms}]\n"));
            }
            Evidence::Check { .. } => unreachable!("no agent raises it"),
        }
        if let Some(line_number) = raised_finding.line {
            yaml_text.push_str(&format!("    line: {line_number}\n"));
        }
        yaml_text.push_str(&format!("    suggested_fix: {}\n", write_text(&raised_finding.suggested_fix)));
    }
    yaml_text
}

fn quote_yaml(answer_text: &str) -> String {
    Value::from(answer_text).to_string()
}

fn to_block_scalar(answer_text: &str) -> String {
    format!("|\n      {answer_text}")
}

fn escape_html(answer_text: &str) -> String {
    let answer_text = answer_text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    answer_text.replace('"', "&quot;").replace('\'', "&#39;")
}

/// The same answer in all the forms in which agents print one.
fn all_forms(all_findings: &[RaisedFinding]) -> Vec<(&'static str, String)> {
    let (json_answer, pretty_json) = (as_json(all_findings), as_pretty_json(all_findings));
    let yaml_answer = as_yaml(all_findings, quote_yaml);
    let fenced_yaml = format!("```yaml\n{yaml_answer}```\n");
    let (first_half, second_half) = all_findings.split_at(all_findings.len() / 2);
    vec![
        ("bare yaml", yaml_answer.clone()),
        ("fenced yaml", fenced_yaml.clone()),
        ("yaml blocks", as_yaml(all_findings, to_block_scalar)),
        ("yaml without quotation marks", as_yaml(all_findings, str::to_string)),
        ("typographic quotation marks", format!("```yaml\n{}```", as_yaml(all_findings, |text| format!("“{text}”")))),
        ("yaml in prose", format!("I have read it: twice.\n\n{yaml_answer}\nThat is all [really].\n")),
        ("fence after prose", format!("Note: see {{x}} and [y].\n\n{fenced_yaml}\nI hope this helps!")),
        ("never closed", format!("```yaml\n{yaml_answer}")),
        ("bare json", json_answer.clone()),
        ("fenced json", format!("```json\n{pretty_json}\n```")),
        ("json in prose", format!("Sure! Here you go: {json_answer} Anything else?")),
        ("json in an envelope", json!({"type": "result", "result": fenced_yaml}).to_string()),
        ("stream of envelopes", format!("{}\n{}\n", json!({"type": "init"}), json!({"text": pretty_json}))),
        (
            "wrapped",
            json!({"review": {"ok": false, "data": {"findings": all_findings.iter().map(finding_to_json).collect::<Vec<_>>()}}})
                .to_string(),
        ),
        ("a list without a name", json!(all_findings.iter().map(finding_to_json).collect::<Vec<_>>()).to_string()),
        ("trailing commas", pretty_json.replace("}\n", "},\n").replace("\"\n", "\",\n")),
        (
            "comments",
            pretty_json.replace("{\n", "{ // here\n").replacen("\"findings\"", "/* mine */ \"findings\"", 1),
        ),
        ("byte order mark and carriage returns", format!("\u{feff}{}", fenced_yaml.replace('\n', "\r\n"))),
        ("tabs", yaml_answer.replace("    ", "\t\t").replace("  - ", "\t- ")),
        ("html", escape_html(&fenced_yaml)),
        ("html of json", escape_html(&pretty_json)),
        (
            "other cases",
            yaml_answer.replace("findings:", "Findings:")
                .replace("severity:", "Severity:")
                .replace("suggested_fix:", "Suggested Fix:"),
        ),
        (
            "synonyms",
            yaml_answer.replace("findings:", "issues:")
                .replace("description:", "problem:")
                .replace("suggested_fix:", "recommendation:"),
        ),
        (
            "several blocks",
            format!("First:\n```yaml\n{}```\nThen:\n```yaml\n{}```\n", render_list(first_half), render_list(second_half)),
        ),
        (
            "the form first",
            format!(
                "The form:\n```yaml\nfindings:\n  - severity: <high>\n    description: \"<what>\"\n    quote: \"<x>\"\n```\n\
                 Mine:\n{fenced_yaml}"
            ),
        ),
        ("said twice", format!("Draft:\n{fenced_yaml}\nFinal:\n{fenced_yaml}")),
    ]
}

fn render_list(some_findings: &[RaisedFinding]) -> String {
    if some_findings.is_empty() { "findings: []\n".to_string() } else { as_yaml(some_findings, quote_yaml) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_good_answer_survives_every_dress(all in any_answer()) {
        for (dress, text) in all_forms(&all) {
            let parsed = parse_answer(&text, AnswerKind::Findings);
            let remarks = parsed.remarks.join("; ");
            let read = expect_findings(parsed, &text);
            prop_assert_eq!(&read, &all, "{}: {}\n{}", dress, remarks, text);
        }
    }

    #[test]
    fn a_good_answer_cut_anywhere_says_nothing_it_did_not_say(all in any_answer(), at in 0.0..1.0f64, json in any::<bool>()) {
        let text = if json { as_pretty_json(&all) } else { format!("```yaml\n{}", as_yaml(&all, quote_yaml)) };
        let mut at = (text.len() as f64 * at) as usize;
        while !text.is_char_boundary(at) { at -= 1; }
        if let AnswerContent::Findings { raised } = parse_answer(&text[..at], AnswerKind::Findings).content {
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
        for wanted in ALL_KINDS {
            parse_answer(&text, wanted);
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
        for wanted in ALL_KINDS {
            parse_answer(&text, wanted);
        }
    }

    #[test]
    fn a_broken_good_answer_is_read_or_refused(
        all in any_answer(), dress in 0..64usize, at in 0.0..1.0f64, length in 0..6usize, put in "[\\PC\n\"{}:,]{0,3}"
    ) {
        let dressed = all_forms(&all);
        let mut chars: Vec<char> = dressed[dress % dressed.len()].1.chars().collect();
        let at = ((chars.len() as f64) * at) as usize;
        let end = (at + length).min(chars.len());
        chars.splice(at..end, put.chars());
        let text: String = chars.into_iter().collect();
        for wanted in ALL_KINDS {
            parse_answer(&text, wanted);
        }
    }
}

// --- by example -----------------------------------------------------------------------------------------------------

#[test]
fn colons_in_unquoted_texts_are_kept() {
    let answer_text = [
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
    let read_findings = parse_findings(&answer_text.join("\n"));
    assert_eq!(read_findings[0].description, "The limit: 5 or 10? Section 2 says: both");
    assert_eq!(read_findings[0].evidence, Evidence::Quote { text: "Limit: 5 (see: table)".into() });
    assert_eq!(read_findings[1].evidence, Evidence::Quote { text: "He said \"no\" twice".into() });
    assert_eq!(read_findings[1].suggested_fix, "write one of them: the lower");
}

#[test]
fn numbers_and_words_of_yaml_stay_as_they_were_written() {
    let answer_text =
        "findings:\n- description: d\n  quote: 1.50\n- {description: e, absent: {heading: Off, terms: [yes, 99.90]}}\n";
    for answer_text in [answer_text.to_string(), format!("```yaml\n{answer_text}```")] {
        let parsed_answer = parse_answer(&answer_text, AnswerKind::Findings);
        assert!(
            !parsed_answer.remarks.iter().any(|remark| remark.contains("malformed")),
            "{:?}",
            parsed_answer.remarks
        );
        let read_findings = expect_findings(parsed_answer, &answer_text);
        assert_eq!(read_findings[0].evidence, Evidence::Quote { text: "1.50".into() });
        let terms = vec!["yes".to_string(), "99.90".to_string()];
        assert_eq!(read_findings[1].evidence, Evidence::Absence { heading: "Off".into(), terms });
    }
}

#[test]
fn json_with_typographic_quotes_is_read() {
    let answer_text = "{“findings”: [{“severity”: “high”, “description”: “a “b” c”, “quote”: “q: 1”}]}";
    let read_findings = parse_findings(answer_text);
    assert_eq!((read_findings[0].severity, read_findings[0].description.as_str()), (Severity::High, "a “b” c"));
    assert_eq!(read_findings[0].evidence, Evidence::Quote { text: "q: 1".into() });
}

#[test]
fn a_single_finding_and_lists_by_severity_or_name_are_read() {
    for answer_text in [
        "finding:\n  severity: high\n  description: d\n  quote: q\n",
        "findings:\n  severity: high\n  description: d\n  quote: q\n",
        "severity: high\ndescription: d\nquote: q\n",
        r#"{"severity": "high", "description": "d", "quote": "q"}"#,
        r#"{"findings": {"high": [{"description": "d", "quote": "q"}]}}"#,
        r#"{"findings": {"one": {"severity": "high", "description": "d", "quote": "q"}}}"#,
    ] {
        let read_findings = parse_findings(&format!("```\n{answer_text}\n```"));
        assert_eq!(
            (read_findings.len(), read_findings[0].severity, read_findings[0].description.as_str()),
            (1, Severity::High, "d"),
            "{answer_text}"
        );
    }
}

#[test]
fn severities_of_every_scale_are_understood() {
    for (severity_text, expected_severity) in [
        ("Blocker", Severity::Critical),
        ("blocking", Severity::Critical),
        ("MAJOR", Severity::High),
        ("minor", Severity::Medium),
        ("info", Severity::Low),
        ("nit", Severity::Low),
        ("P1", Severity::High),
        ("low (not a blocker)", Severity::Low),
        ("**High** (must fix)", Severity::High),
        ("medium/high", Severity::High),
        ("gruesome", Severity::Critical),
    ] {
        let answer_text =
            json!({"findings": [{"severity": severity_text, "description": "d", "quote": "q"}]}).to_string();
        assert_eq!(parse_findings(&answer_text)[0].severity, expected_severity, "{severity_text}");
    }
}

#[test]
fn the_file_of_a_finding_is_read_from_every_field() {
    for (field_name, field_text, expected_file, expected_line) in [
        ("file", "src/a.rs", Some("src/a.rs"), None),
        ("file", "`src/a.rs:12`", Some("src/a.rs"), Some(12)),
        ("path", "src/a b.rs", Some("src/a b.rs"), None),
        ("location", "src/a.rs:12", Some("src/a.rs"), Some(12)),
        ("location", "`src/a.rs`, line 12", Some("src/a.rs"), Some(12)),
        ("location", "src/a.rs#L12", Some("src/a.rs"), Some(12)),
        ("location", "Makefile", None, None),
        ("location", "section 2", None, None),
    ] {
        let json_item = json!({ "severity": "low", "description": "d", "quote": "q", field_name: field_text });
        let read_findings = parse_findings(&json!({ "findings": [json_item] }).to_string());
        assert_eq!(
            (read_findings[0].file.as_deref(), read_findings[0].line),
            (expected_file, expected_line),
            "{field_name}: {field_text}"
        );
    }
    let json_item = json!({ "severity": "low", "description": "d", "quote": "q", "file": "src/a.rs", "line": 3,
        "location": "src/b.rs:9" });
    let read_findings = parse_findings(&json!({ "findings": [json_item] }).to_string());
    assert_eq!((read_findings[0].file.as_deref(), read_findings[0].line), (Some("src/a.rs"), Some(3)));
}

#[test]
fn line_numbers_are_read_in_every_notation() {
    for (field_name, field_text, expected_line) in [
        ("line", "7", Some(7)),
        ("line", "L7", Some(7)),
        ("lines", "7-9", Some(7)),
        ("location", "docs/prd.md:7", Some(7)),
        ("location", "prd.md, line 7", Some(7)),
        ("location", "section 2", None),
        ("location", "prd.md:intro", None),
    ] {
        let answer_text = json!({"findings": [{"description": "d", "quote": "q", field_name: field_text}]}).to_string();
        assert_eq!(parse_findings(&answer_text)[0].line, expected_line, "{field_name}: {field_text}");
    }
}

#[test]
fn a_duplicate_key_becomes_a_remark() {
    let answer_text = r#"{"findings": [{"description": "first", "description": "second", "quote": "q"}]}"#;
    let parsed_answer = parse_answer(answer_text, AnswerKind::Findings);
    assert!(
        parsed_answer.remarks.contains(&"item 1 has `description` twice; the later one is used".to_string()),
        "{parsed_answer:?}"
    );
    assert_eq!(expect_findings(parsed_answer, answer_text)[0].description, "second");
    let two_lists = "findings:\n- {description: a, quote: q}\nfindings:\n- {description: b, quote: r}\n";
    assert_eq!(parse_findings(two_lists).len(), 2, "no list is lost to another");
    assert_eq!(parse_findings(&format!("```yaml\n{two_lists}```")).len(), 2);
}

#[test]
fn verdicts_are_read_in_many_forms() {
    for answer_text in [
        "```yaml\nverdicts:\n  - id: F1\n    verdict: VALID\n  \
         - {id: F2, verdict: INVALID, reason: it is there}\n  - id: F3\n    verdict: AMBIGUOUS\n```",
        r#"{"verdicts": [{"id": "F1", "verdict": "valid"}, {"id": "F2", "ruling": "Invalid", "counter_evidence": "q"},
            {"finding": "[F3]", "verdict": "unclear"}]}"#,
        "verdicts:\n  F1: VALID\n  F2: {verdict: INVALID, because: no}\n  F3: AMBIGUOUS\n",
        "rulings:\n- F1: valid\n- F2:\n    verdict: not valid\n    reason: said elsewhere\n- F3: ambiguous\n",
    ] {
        assert_eq!(parse_rulings(answer_text).0, "F1 valid, F2 invalid, F3 ambiguous", "{answer_text}");
    }
}

#[test]
fn a_verdict_without_proof_or_with_a_contradiction_is_ambiguous() {
    let (read_rulings, remarks) = parse_rulings(
        "verdicts:\n- {id: F1, verdict: INVALID}\n- {id: F2, verdict: VALID}\n- {id: F2, verdict: INVALID, reason: r}\n",
    );
    assert_eq!(read_rulings, "F1 ambiguous, F2 ambiguous");
    assert_eq!(
        remarks,
        [
            "F1 was called invalid without counter-evidence, treated as ambiguous",
            "F2 was called valid and invalid, treated as ambiguous",
        ]
    );
    assert_eq!(ChallengeVerdict::Ambiguous.as_str(), "ambiguous");
}

#[test]
fn an_unknown_verdict_is_not_a_ruling() {
    let answer_text = "verdicts:\n- {id: F1, verdict: upheld}\n- {id: F2, verdict: meh}\n- {id: F2, verdict: so so}\n\
         - {id: F3, verdict: hm}\n- {id: F3, verdict: True Positive}\n- {id: F4, valid: false, reason: r}\n";
    let parsed_answer = parse_answer(answer_text, AnswerKind::Verdicts);
    let AnswerContent::Rulings { rulings, unknown, .. } = parsed_answer.content else {
        panic!("{:?}", parsed_answer.content)
    };
    let read_rulings: Vec<String> = rulings.iter().map(|ruling| format!("{} {}", ruling.id, ruling.holds)).collect();
    assert_eq!(read_rulings, ["F1 valid", "F3 valid", "F4 invalid"]);
    assert_eq!(unknown, [UnknownWord { id: FindingId(2), word: "meh".into() }]);
    assert_eq!(parsed_answer.remarks, ["unknown verdict `meh` for F2, ignored"]);
}

#[test]
fn an_answer_of_unknown_words_only_is_unreadable_and_lists_the_accepted_ones() {
    for (answer_text, answer_kind, expected_start) in [
        (
            "verdicts: [{id: F1, verdict: meh}, {id: F2, verdict: hm}]",
            AnswerKind::Verdicts,
            "unknown verdict `meh` for F1, `hm` for F2; accepted words: VALID (or ",
        ),
        (
            "fixes: [{id: F1, status: meh}]",
            AnswerKind::Fixes,
            "unknown status `meh` for F1; accepted words: FIXED (or ",
        ),
    ] {
        let AnswerContent::Unreadable { message } = parse_answer(answer_text, answer_kind).content else { panic!() };
        assert!(message.starts_with(expected_start), "{message}");
    }
}

#[test]
fn an_unknown_status_is_not_a_claim() {
    let answer_text = "fixes:\n- {id: F1, status: Resolved}\n- {id: F2, status: meh}\n- {id: F3, status: skipped}\n";
    let parsed_answer = parse_answer(answer_text, AnswerKind::Fixes);
    let AnswerContent::Fixes { claims, unknown } = parsed_answer.content else { panic!() };
    assert_eq!(
        claims.iter().map(|claim| (claim.id.0, claim.said)).collect::<Vec<_>>(),
        [(1, ClaimStatus::Fixed), (3, ClaimStatus::Blocked)]
    );
    assert_eq!(unknown, [UnknownWord { id: FindingId(2), word: "meh".into() }]);
}

#[test]
fn the_remark_about_too_many_items_says_which_ones_were_kept() {
    let first_remark = |list_name: &str, json_item: serde_json::Value, answer_kind| {
        let answer_text = json!({ list_name: vec![json_item; 1_001] }).to_string();
        parse_answer(&answer_text, answer_kind).remarks[0].clone()
    };
    let finding = json!({"severity": "low", "description": "d", "quote": "q"});
    assert_eq!(
        first_remark("findings", finding, AnswerKind::Findings),
        "kept 1000 of 1001 items, the most severe ones; the others were ignored"
    );
    for (list_name, json_item, answer_kind) in [
        ("fixes", json!({"id": "F1", "status": "FIXED"}), AnswerKind::Fixes),
        ("verdicts", json!({"id": "F1", "verdict": "VALID"}), AnswerKind::Verdicts),
    ] {
        assert_eq!(
            first_remark(list_name, json_item, answer_kind),
            "kept 1000 of 1001 items, the first ones; the others were ignored"
        );
    }
}

/// A quote is looked up in the subject, so it has to stay as it is written.
#[test]
fn a_bare_number_in_a_quote_keeps_its_spelling() {
    for number_text in ["0x1F", "1_000", "0o17", "007", "+5", "1.50", "12", "true", "-0x1f", "1e3"] {
        for answer_text in [
            format!("```yaml\nfindings:\n  - description: d\n    quote: {number_text}\n    line: 3\n```"),
            format!("findings:\n  - description: d\n    quote: {number_text}\n    line: 3\n"),
            format!("```yaml\nfindings:\n  - {{description: d, quote: {number_text}, line: 3}}\n```"),
        ] {
            let read_findings = parse_findings(&answer_text);
            assert_eq!(read_findings[0].evidence, Evidence::Quote { text: number_text.into() }, "{answer_text}");
            assert_eq!(read_findings[0].line, Some(3));
        }
    }
}

#[test]
fn a_negated_fix_is_not_a_fix() {
    let answer_text = "fixes:\n- {id: F1, status: Fixed ✅}\n- {id: F2, status: not fixed}\n\
         - {id: F3, status: 'BLOCKED (needs a decision)'}\n- {id: F4, status: partially fixed}\n";
    let parsed_answer = parse_answer(answer_text, AnswerKind::Fixes);
    let AnswerContent::Fixes { claims, .. } = parsed_answer.content else { panic!() };
    assert_eq!(
        claims.iter().map(|claim| (claim.id.0, claim.said)).collect::<Vec<_>>(),
        [(1, ClaimStatus::Fixed), (2, ClaimStatus::Unfixed), (3, ClaimStatus::Blocked), (4, ClaimStatus::Unfixed)]
    );
    assert_eq!(parsed_answer.remarks, [""; 0]);
}

/// Other tools took a word for a signal: `abandoned` contains `done`, and a promise in the prompt ended a loop.
#[test]
fn a_word_inside_another_word_is_not_a_claim() {
    for status in ["abandoned", "undone", "prefixed", "unresolved", "will be done", "to be fixed", "LOOP_COMPLETE"] {
        let parsed_answer =
            parse_answer(&format!("fixes:\n  - id: F1\n    status: {status}\n    note: x\n"), AnswerKind::Fixes);
        let claims = match parsed_answer.content {
            AnswerContent::Fixes { claims, .. } => claims,
            _ => vec![],
        };
        let fixed_count = claims.iter().filter(|claim| claim.said == ClaimStatus::Fixed).count();
        assert_eq!(fixed_count, 0, "{status}");
    }
    for answer_text in [
        "<review-complete>ALL_ISSUES_RESOLVED</review-complete>",
        "<promise>DONE</promise>",
        "LOOP_COMPLETE",
        "All findings are fixed. Done!",
        "",
    ] {
        for answer_kind in [AnswerKind::Fixes, AnswerKind::Findings, AnswerKind::Verdicts] {
            let content = parse_answer(answer_text, answer_kind).content;
            assert!(matches!(content, AnswerContent::Unreadable { .. }), "{answer_text}: {content:?}");
        }
    }
}

#[test]
fn the_minutes_of_a_party_are_read_with_its_findings() {
    let answer_text = r#"
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
    for answer_text in
        [answer_text.to_string(), format!("```yaml{answer_text}```"), format!("We met.\n{answer_text}\nBye.")]
    {
        let parsed_answer = parse_answer(&answer_text, AnswerKind::Findings);
        let minutes = parsed_answer.minutes.clone();
        let mut read_findings = expect_findings(parsed_answer, &answer_text);
        minutes.raise_severities(&mut read_findings);
        assert_eq!(read_findings.iter().map(|one| one.severity).collect::<Vec<_>>(), [Severity::High, Severity::Low]);
        assert_eq!(minutes.personas, ["architect", "tester", "security"]);
        assert_eq!(minutes.consensus, "ship after the first is fixed");
        assert_eq!(minutes.dissent, "none worth naming");
        assert_eq!(minutes.ballots[0].dissent, "security: it is behind a wall");
        assert_eq!(minutes.ballots.len(), 2);
    }
}

#[test]
fn ten_thousand_findings_are_limited_to_the_most_severe() {
    let numbered_finding = |finding_number: usize| {
        let severity_name = if finding_number == 9_999 { "critical" } else { "low" };
        json!({"severity": severity_name, "description": format!("number {finding_number}"), "quote": "q"})
    };
    let json_items: Vec<Value> = (0..10_000).map(numbered_finding).collect();
    let yaml_items: String = json_items.iter().map(|json_item| format!("- {json_item}\n")).collect();
    for answer_text in [
        json!({ "findings": json_items }).to_string(),
        format!("```yaml\nfindings:\n{yaml_items}```\n"),
        format!("findings:\n{yaml_items}"),
    ] {
        let parsed_answer = parse_answer(&answer_text, AnswerKind::Findings);
        assert_eq!(parsed_answer.remarks[0], "kept 1000 of 10000 items, the most severe ones; the others were ignored");
        let kept_findings = expect_findings(parsed_answer, "ten thousand");
        assert_eq!(kept_findings.len(), MAX_ITEMS);
        assert_eq!(kept_findings.last().map(|one| one.description.as_str()), Some("number 9999"));
    }
}

#[test]
fn the_number_of_remarks_is_limited() {
    let yaml_items: String = (0..500)
        .map(|item_number| format!("- {{description: d{item_number}, quote: q, severity: odd{item_number}}}\n"))
        .collect();
    let parsed_answer = parse_answer(&format!("findings:\n{yaml_items}"), AnswerKind::Findings);
    assert_eq!(parsed_answer.remarks.len(), MAX_REMARKS + 1);
    assert_eq!(parsed_answer.remarks.last().map(String::as_str), Some("and 470 more remarks"));
}

/// Parses 256 KB of each piece. A parser that reads its input again for every piece would need many minutes.
fn parse_repetitions_of_each(pieces: &[&str]) {
    for piece in pieces {
        let repeated_text = piece.repeat((1 << 18) / piece.len());
        parse_answer(&repeated_text, AnswerKind::Findings);
        parse_answer(&format!("```yaml\nfindings:\n{repeated_text}"), AnswerKind::Findings);
    }
}

#[test]
fn thousands_of_opened_brackets_are_parsed_in_time() {
    parse_repetitions_of_each(&["{", "[", "{\"a\":", "{\"a\" ", "a{, ", "{}", "findings: [\n"]);
}

#[test]
fn thousands_of_opened_quotes_are_parsed_in_time() {
    parse_repetitions_of_each(&["\"", "[\"x", "&quot;", "\\", "| ", "/*", "\n"]);
}

#[test]
fn thousands_of_opened_blocks_are_parsed_in_time() {
    parse_repetitions_of_each(&[
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
fn ten_megabytes_of_findings_are_parsed_in_time() {
    let long_text = "A long story. ".repeat(70);
    let json_items: Vec<Value> = (0..10_000)
        .map(
            |item_number| json!({"severity": "low", "description": format!("{item_number} {long_text}"), "quote": "q"}),
        )
        .collect();
    let json_answer = json!({ "findings": json_items }).to_string();
    assert!(json_answer.len() > 10_000_000);
    assert_eq!(parse_findings(&json_answer).len(), MAX_ITEMS);
    // One item is broken, so that the strict parser fails and all items are read by the list finder.
    let yaml_items: String = json_items.iter().map(|json_item| format!("- {json_item}\n")).collect();
    assert_eq!(parse_findings(&format!("findings:\n- description: a: b\n  quote: q\n{yaml_items}")).len(), MAX_ITEMS);
    let single_answer = json!({"findings": [{"description": json_answer, "quote": yaml_items}]}).to_string();
    assert!(parse_findings(&single_answer)[0].description.len() < 5_000, "texts are bounded");
}
