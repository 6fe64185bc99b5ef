//! What an agent said, as typed findings or fixes.
//!
//! Lenient on purpose: YAML or JSON, fenced, bare or after prose, with the names that other tools' prompts use. What can be
//! understood is a value, what had to be overlooked is a remark; only a text without any list is unreadable.

use serde_json::{Map, Value};
use tribunal_core::{
    brief::{Claim, Content, Raised, Said},
    finding::{Evidence, Severity},
    ids::FindingId,
    text::cut,
};

/// What an answer should contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Findings,
    Fixes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    pub content: Content,
    pub remarks: Vec<String>,
}

const FINDINGS: &[&str] = &["findings", "issues"];
const FIXES: &[&str] = &["fixes", "fixes_applied"];

pub fn parse(text: &str, wanted: Wanted) -> Parsed {
    let mut problem = None;
    let names = match wanted {
        Wanted::Findings => FINDINGS,
        Wanted::Fixes => FIXES,
    };
    // The last block counts: agents quote the form before they fill it in.
    for candidate in candidates(text, names).into_iter().rev() {
        match serde_saphyr::from_str::<Value>(candidate) {
            Ok(Value::Object(map)) => {
                if let Some(Value::Array(items)) = names.iter().find_map(|name| map.get(*name)) {
                    return read(items, wanted);
                }
            }
            Ok(_) => {}
            Err(cause) => problem = Some(first_line(&cause.to_string())),
        }
    }
    let message = match problem {
        Some(cause) => format!("no `{}` list could be read: {cause}", names[0]),
        None if text.trim().is_empty() => "the answer is empty".to_string(),
        None => format!(
            "the answer has no `{}` list; it begins: {}",
            names[0],
            cut(first_line(text.trim()).trim(), 80)
        ),
    };
    Parsed { content: Content::Unreadable { message }, remarks: Vec::new() }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_string()
}

/// Parts of the text that may be the list, the likeliest last: from the first brace, from the list's name on, fenced
/// blocks.
fn candidates<'t>(text: &'t str, names: &[&str]) -> Vec<&'t str> {
    let mut found = Vec::new();
    if let (Some(at), Some(end)) = (text.find('{'), text.rfind('}'))
        && at < end
    {
        found.push(&text[at..=end]);
    }
    if let Some(at) = names.iter().find_map(|name| line_start(text, &format!("{name}:"))) {
        found.push(&text[at..]);
    }
    found.extend(fenced(text));
    found
}

fn line_start(text: &str, start: &str) -> Option<usize> {
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with(start) {
            return Some(offset);
        }
        offset += line.len();
    }
    None
}

/// Fenced blocks. A fence is closed by one that stands no deeper than it: deeper ones belong to the text inside.
fn fenced(text: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    let mut offset = 0;
    let mut open: Option<(usize, usize)> = None;
    for line in text.split_inclusive('\n') {
        let depth = line.len() - line.trim_start().len();
        if line.trim_start().starts_with("```") {
            match open {
                None => open = Some((depth, offset + line.len())),
                Some((outer, start)) if depth <= outer => {
                    blocks.push(&text[start..offset]);
                    open = None;
                }
                Some(_) => {}
            }
        }
        offset += line.len();
    }
    // Half an answer: the fence was never closed.
    if let Some((_, start)) = open
        && start < text.len()
    {
        blocks.push(&text[start..]);
    }
    blocks
}

fn read(items: &[Value], wanted: Wanted) -> Parsed {
    let mut remarks = Vec::new();
    let content = match wanted {
        Wanted::Findings => Content::Findings { raised: each(items, finding, &mut remarks) },
        Wanted::Fixes => Content::Fixes { claims: each(items, claim, &mut remarks) },
    };
    let kept = match &content {
        Content::Findings { raised } => raised.len(),
        Content::Fixes { claims } => claims.len(),
        Content::Unreadable { .. } => 0,
    };
    // A list of which nothing can be used is not the same as an empty list.
    if kept == 0 && !items.is_empty() {
        let message = remarks.join("; ");
        return Parsed { content: Content::Unreadable { message }, remarks };
    }
    Parsed { content, remarks }
}

type Reader<T> = fn(&Map<String, Value>, &mut Vec<String>) -> Result<T, String>;

fn each<T>(items: &[Value], read: Reader<T>, remarks: &mut Vec<String>) -> Vec<T> {
    let mut kept = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let result = match item {
            Value::Object(map) => read(map, remarks),
            _ => Err("it is not a mapping".to_string()),
        };
        match result {
            Ok(one) => kept.push(one),
            Err(why) => remarks.push(format!("item {} was left out: {why}", index + 1)),
        }
    }
    kept
}

fn finding(map: &Map<String, Value>, remarks: &mut Vec<String>) -> Result<Raised, String> {
    let description = text(map, &["description", "issue", "title"]).ok_or("it has no description")?;
    if description.starts_with('<') && description.ends_with('>') {
        return Err("it is the form, not an answer".to_string());
    }
    let evidence = evidence(map).ok_or("it has neither a quote nor an absence")?;
    let severity = match text(map, &["severity"]) {
        Some(word) => Severity::parse(&word).unwrap_or_else(|| {
            // Whoever invents a word for it rarely means that it is harmless.
            remarks.push(format!("severity `{word}` is unknown and was taken as critical"));
            Severity::Critical
        }),
        None => {
            remarks.push("a finding without a severity was taken as medium".to_string());
            Severity::Medium
        }
    };
    Ok(Raised {
        severity,
        category: text(map, &["category"]).unwrap_or_else(|| "general".to_string()),
        description,
        evidence,
        line: line(map),
        suggested_fix: text(map, &["suggested_fix", "fix", "suggestion"]).unwrap_or_default(),
    })
}

fn evidence(map: &Map<String, Value>) -> Option<Evidence> {
    if let Some(text) = text(map, &["quote"]) {
        return Some(Evidence::Quote { text });
    }
    if let Some(Value::Object(absent)) = ["absent", "absence"].iter().find_map(|name| map.get(*name)) {
        let terms = match absent.get("terms") {
            Some(Value::Array(terms)) => terms.iter().filter_map(scalar).collect(),
            Some(one) => scalar(one).into_iter().collect(),
            None => Vec::new(),
        };
        return Some(Evidence::Absence { heading: text(absent, &["heading"])?, terms });
    }
    match map.get("evidence") {
        Some(Value::Object(inner)) => evidence(inner),
        Some(other) => scalar(other).map(|text| Evidence::Quote { text }),
        None => None,
    }
}

fn claim(map: &Map<String, Value>, _: &mut Vec<String>) -> Result<Claim, String> {
    let id = text(map, &["id", "finding", "issue"]).ok_or("it names no finding")?;
    let id = FindingId::parse(&id).ok_or_else(|| format!("`{id}` is no finding id"))?;
    let said = match text(map, &["status"]).unwrap_or_default().to_ascii_uppercase().as_str() {
        "FIXED" => Said::Fixed,
        "BLOCKED" => Said::Blocked,
        other => return Err(format!("status `{other}` is neither FIXED nor BLOCKED")),
    };
    let note = text(map, &["fix_description", "description", "reason", "note"]).unwrap_or_default();
    Ok(Claim { id, said, note, verification: text(map, &["verification"]).unwrap_or_default() })
}

fn line(map: &Map<String, Value>) -> Option<u32> {
    let said = text(map, &["line", "location"])?;
    let digits = said.rsplit(':').next().unwrap_or(&said);
    let digits: String =
        digits.trim().trim_start_matches('L').chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn text(map: &Map<String, Value>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| map.get(*name)).and_then(scalar).filter(|text| !text.trim().is_empty())
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(yes) => Some(yes.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tribunal_core::{brief::Brief, level::Role, subject::Subject};

    use super::*;

    fn raised(text: &str) -> Vec<Raised> {
        match parse(text, Wanted::Findings).content {
            Content::Findings { raised } => raised,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_same_finding_in_many_dresses() {
        let yaml = "findings:\n  - severity: high\n    category: a\n    description: d\n    quote: \"q: 1\"\n    line: 7\n";
        let json = r#"{"issues":[{"severity":"HIGH","category":"a","issue":"d","evidence":{"quote":"q: 1"},"location":"x.md:7"}]}"#;
        for text in [
            format!("Here is what I found.\n\n```yaml\n{yaml}```\nThat is all."),
            format!("```\n{yaml}"),
            format!("Some prose first.\n{yaml}"),
            yaml.to_string(),
            format!("```json\n{json}\n```"),
            format!("Sure! {json}"),
        ] {
            let found = raised(&text);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(found[0].severity, Severity::High, "{text}");
            assert_eq!(found[0].evidence, Evidence::Quote { text: "q: 1".into() }, "{text}");
            assert_eq!(found[0].line, Some(7), "{text}");
        }
    }

    #[test]
    fn a_fence_inside_a_quoted_text_does_not_end_the_answer() {
        let text = [
            "```yaml",
            "findings:",
            "  - description: d",
            "    quote: q",
            "    suggested_fix: |",
            "      Write:",
            "      ```",
            "      x: 1",
            "      ```",
            "  - description: second",
            "    quote: r",
            "```",
        ];
        assert_eq!(raised(&text.join("\n")).len(), 2);
    }

    #[test]
    fn a_list_outside_of_all_fences_is_found_too() {
        assert_eq!(
            raised("For example:\n```sh\nls\n```\nfindings:\n  - {description: d, quote: q}\n").len(),
            1
        );
    }

    #[test]
    fn the_last_block_counts_not_the_example_before_it() {
        let text = "The form:\n```yaml\nfindings:\n  - description: example\n    quote: x\n```\nMine:\n```yaml\nfindings: []\n```\n";
        assert_eq!(raised(text), []);
    }

    #[test]
    fn what_is_half_right_is_kept_and_the_rest_is_named() {
        let text = "findings:\n  - description: no evidence\n  - severity: gruesome\n    description: d\n    quote: q\n  - 7\n";
        let parsed = parse(text, Wanted::Findings);
        let Content::Findings { raised } = parsed.content else { panic!() };
        assert_eq!(raised.len(), 1);
        assert_eq!(parsed.remarks.len(), 3, "{:?}", parsed.remarks);
    }

    #[test]
    fn a_text_without_a_list_is_unreadable_and_says_why() {
        for (text, says) in [
            ("", "empty"),
            ("All good, nothing found!", "no `findings` list"),
            ("```yaml\nfindings: [\n```", "could be read"),
        ] {
            let Content::Unreadable { message } = parse(text, Wanted::Findings).content else {
                panic!("{text}")
            };
            assert!(message.contains(says), "{message}");
        }
    }

    #[test]
    fn a_list_of_which_nothing_can_be_used_is_not_an_empty_list() {
        let parsed = parse("findings:\n  - description: vague worry\n", Wanted::Findings);
        let Content::Unreadable { message } = parsed.content else { panic!("{parsed:?}") };
        assert!(message.contains("neither a quote nor an absence"), "{message}");
    }

    #[test]
    fn a_prompt_that_comes_back_is_no_answer() {
        let brief = Brief {
            role: Role::Adversarial,
            subject: Subject::at("a.md", None),
            round: 1,
            required: 3,
            known: vec![],
            assigned: vec![],
            said: vec![],
            correction: String::new(),
        };
        let echo = crate::prompt::render(&brief, "# A\n");
        assert!(matches!(parse(&echo, Wanted::Findings).content, Content::Unreadable { .. }));
    }

    #[test]
    fn fixes_are_claims_about_findings() {
        let text = [
            "```yaml",
            "fixes:",
            "  - {id: F2, status: fixed, fix_description: did it}",
            "  - {id: F3, status: BLOCKED, reason: who decides?}",
            "  - {id: X, status: FIXED}",
            "```",
        ]
        .join("\n");
        let parsed = parse(&text, Wanted::Fixes);
        let Content::Fixes { claims } = parsed.content else { panic!() };
        assert_eq!(
            claims.iter().map(|c| (c.id.0, c.said)).collect::<Vec<_>>(),
            [(2, Said::Fixed), (3, Said::Blocked)]
        );
        assert_eq!(parsed.remarks, ["item 3 was left out: `X` is no finding id"]);
    }

    #[test]
    fn an_absence_is_evidence_too() {
        let found = raised("findings:\n- description: d\n  absent: {heading: Privacy, terms: [erase, 90]}\n");
        let terms = vec!["erase".to_string(), "90".to_string()];
        assert_eq!(found[0].evidence, Evidence::Absence { heading: "Privacy".into(), terms });
    }
}
