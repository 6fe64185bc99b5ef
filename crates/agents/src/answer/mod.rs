//! Parses what an agent said into typed findings, fixes or rulings.
//!
//! The parser is lenient on purpose: it accepts YAML or JSON, fenced, bare or in prose, broken or cut off, with the
//! names that other tools' prompts use. Everything that can be understood becomes a value, everything that had to be
//! skipped becomes a remark, and only a text without any list is unreadable. What an answer is worth is not decided
//! here but in `core`.
//!
//! [`regions`] removes what an answer is wrapped in, [`list_finder`] and [`lenient_json`] find the lists, and
//! [`items`] reads the items in them.

mod dress;
mod items;
mod loose;
mod minutes;
mod node;
mod walk;

use std::collections::HashSet;

use tribunal_core::{
    brief::{Content, Minutes},
    level::Role,
    text::cut,
};

use dress::{Region, regions, undress};
use node::{Node, is_one_of};
use walk::{Names, Unread, Walked, strict, walk};

/// What kind of list an answer should contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Findings,
    Fixes,
    /// A challenger's verdict on each finding.
    Verdicts,
}

/// A parsed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    pub content: Content,
    /// What a party reported in addition to its findings.
    pub minutes: Minutes,
    pub remarks: Vec<String>,
}

/// The most items that are kept of an answer; the most severe ones have precedence.
pub const MOST_ITEMS: usize = 1_000;
/// The most remarks that are kept of an answer.
pub const MOST_REMARKS: usize = 30;
/// How many envelopes are opened, one inside the other: some clients wrap the answer as a string into a JSON object.
const ENVELOPES: u32 = 2;

impl Wanted {
    /// The kind of answer that an agent in this role is asked for.
    pub fn of(role: Role) -> Wanted {
        match role {
            Role::Fixer => Wanted::Fixes,
            Role::Challenger => Wanted::Verdicts,
            _ => Wanted::Findings,
        }
    }

    fn names(self) -> Names {
        match self {
            Wanted::Findings => items::FINDINGS,
            Wanted::Fixes => items::FIXES,
            Wanted::Verdicts => items::VERDICTS,
        }
    }
}

/// Parses an answer. This never fails: an answer without any list has the content `Unreadable` with the reason.
pub fn parse(text: &str, wanted: Wanted) -> Parsed {
    let found = gather(&undress(text), wanted, ENVELOPES);
    // An empty list is an answer ("nothing found"); no list at all is not.
    if found.lists == 0 {
        let message = found.problem.unwrap_or_else(|| nothing(text, wanted));
        return Parsed {
            content: Content::Unreadable { message },
            minutes: Minutes::default(),
            remarks: found.remarks,
        };
    }
    items::read(found, wanted)
}

/// Describes an answer in which no list was found.
fn nothing(text: &str, wanted: Wanted) -> String {
    let name = wanted.names().lists[0];
    let text = text.trim();
    if text.is_empty() {
        return "the answer is empty".to_string();
    }
    let first = text.lines().next().unwrap_or_default();
    format!("the answer has no `{name}` list; it begins: {}", cut(first.trim(), 80))
}

/// The lists that were found in the regions of an answer.
#[derive(Debug, Default)]
struct Found {
    /// The number of lists; 0 means that the agent answered nothing.
    lists: usize,
    items: Vec<Node>,
    /// The same items, for a fast search for repetitions.
    seen: HashSet<Node>,
    /// The pairs next to the lists, for example a party's consensus.
    beside: Vec<Node>,
    remarks: Vec<String>,
    /// The reason why nothing could be read.
    problem: Option<String>,
    /// Texts that may themselves be answers.
    letters: Vec<String>,
}

/// Collects the lists of all regions: agents split their answers by topic, and one lost list is a lost review. A list
/// that was introduced as an example, or that is the form from the prompt, counts only if there is no other.
fn gather(text: &str, wanted: Wanted, envelopes: u32) -> Found {
    let mut answers = Found::default();
    let mut examples = Found::default();
    // Every region is collected by itself first, because its remarks depend on how it was read as a whole.
    for region in regions(text) {
        let walked = look(region, wanted, &mut answers.problem);
        let mut own = Found::default();
        for node in walked.nodes {
            own.take_in(node, wanted);
        }
        if walked.cut && own.items.is_empty() && own.lists > 0 {
            // The answer broke off before the first item: perhaps there was nothing to say, perhaps everything was
            // lost. That must not pass as an empty list.
            let name = wanted.names().lists[0];
            own.lists = 0;
            own.problem =
                Some(format!("no `{name}` list could be read: the answer breaks off before its first item"));
        }
        if own.lists > 0 {
            own.remark(
                walked.guessed,
                "the list is not well-formed; it was read as far as it could be understood",
            );
            own.remark(walked.cut, "the answer breaks off in the middle; what is whole was kept");
        }
        // An agent that repeats the requested form before answering did not mean it as findings.
        let form = !own.items.is_empty() && own.items.iter().all(items::is_form);
        let other = if region.example || form { &mut examples } else { &mut answers };
        other.join(own);
    }
    // Texts inside of JSON are opened only if nothing was found outside of them.
    if answers.lists == 0 && envelopes > 0 {
        for letter in std::mem::take(&mut answers.letters) {
            answers.join(gather(&undress(&letter), wanted, envelopes - 1));
        }
    }
    // An example is better than nothing: some agents call their only answer one.
    if answers.lists == 0 {
        examples.problem = answers.problem;
        return examples;
    }
    let number = examples.items.iter().filter(|item| !items::is_form(item)).count();
    answers.remark(number > 0, &format!("an example with {number} items before the answer was left out"));
    answers
}

/// Reads a region. A fenced block is first parsed strictly; prose and broken blocks are searched for lists.
fn look(region: Region<'_>, wanted: Wanted, problem: &mut Option<String>) -> Walked {
    let names = wanted.names();
    let text = region.text.trim();
    if !region.fenced {
        return walk(region.text, names);
    }
    let flow = text.starts_with(['{', '[']);
    // JSON is tried with the lenient reader first. On valid JSON it reads the same as a strict parser, but keeps
    // numbers as they are written.
    if flow {
        let walked = walk(region.text, names);
        if !walked.guessed && !walked.cut {
            return walked;
        }
    }
    match strict(region.text) {
        // Valid YAML without a list may still contain one as text, so the search below gets a second chance.
        Ok(node) if Found::of(node.clone(), wanted).lists > 0 => {
            Walked { nodes: vec![node], ..Walked::default() }
        }
        Ok(_) | Err(Unread::Rewritten) => walk(region.text, names),
        // The strict parser's message is kept in case that the search finds nothing either.
        Err(Unread::Broken(cause)) => {
            *problem = Some(format!("no `{}` list could be read: {cause}", names.lists[0]));
            Walked { guessed: true, ..walk(region.text, names) }
        }
    }
}

impl Found {
    fn of(node: Node, wanted: Wanted) -> Found {
        let mut found = Found::default();
        found.take_in(node, wanted);
        found
    }

    fn remark(&mut self, so: bool, remark: &str) {
        if so && !self.remarks.iter().any(|known| known == remark) {
            self.remarks.push(remark.to_string());
        }
    }

    /// Adds the lists of another region, without the items that are already known.
    fn join(&mut self, other: Found) {
        let (again, counted) = (self.lists > 0, self.items.len());
        self.lists += other.lists;
        if again {
            // Drafts and envelopes repeat the same items. Inside one list, however, repetitions are kept as they are.
            let fresh = other.items.into_iter().filter(|item| !self.seen.contains(item));
            let fresh: Vec<Node> = fresh.collect();
            self.items.extend(fresh);
        } else {
            self.items.extend(other.items);
        }
        self.seen.extend(self.items[counted..].iter().cloned());
        self.beside.extend(other.beside);
        self.letters.extend(other.letters);
        for remark in other.remarks {
            self.remark(true, &remark);
        }
        self.problem = self.problem.take().or(other.problem);
    }

    /// Adds what is found in a node: an item, a list of items, or lists anywhere below it.
    fn take_in(&mut self, node: Node, wanted: Wanted) {
        if items::looks_like_one(&node, wanted) {
            self.lists += 1;
            self.items.push(node);
            return;
        }
        match node {
            Node::Map(pairs) => self.take_in_map(pairs, wanted),
            // One recognizable item makes the whole list an answer; its other items are reported as unusable later.
            Node::List(nodes) => {
                if nodes.iter().any(|node| items::looks_like_one(node, wanted)) {
                    self.lists += 1;
                    self.items.extend(nodes);
                } else {
                    nodes.into_iter().for_each(|node| self.take_in(node, wanted));
                }
            }
            // A text is only kept for opening if it could contain a list at all.
            Node::Text(text) => {
                let names = wanted.names().lists;
                if names.iter().any(|name| text.contains(*name)) && text.contains(':') {
                    self.letters.push(text);
                }
            }
            Node::Nothing => {}
        }
    }

    /// Adds the lists of a map and remembers the pairs that belong next to them.
    fn take_in_map(&mut self, pairs: Vec<(String, Node)>, wanted: Wanted) {
        let names = wanted.names();
        let mut beside = Vec::new();
        for (key, value) in pairs {
            if is_one_of(&key, names.beside) {
                beside.push((key, value));
            } else if is_one_of(&key, names.lists) && matches!(value, Node::List(_) | Node::Map(_)) {
                if let Some(items) = items::of_list(value, wanted) {
                    self.lists += 1;
                    self.items.extend(items);
                }
            } else {
                self.take_in(value, wanted);
            }
        }
        if !beside.is_empty() {
            self.beside.push(Node::Map(beside));
        }
    }
}

#[cfg(test)]
mod tests {
    use tribunal_core::{
        brief::{Brief, Raised, Said},
        finding::{Evidence, Severity},
        subject::Subject,
    };

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
        for role in Role::ALL {
            let brief = Brief::new(role, Subject::at("a.md", None), 1);
            let echo = crate::prompt::render(&brief, "# A\n```yaml\nfindings: []\n```\n", None).unwrap();
            let content = parse(&echo, Wanted::of(role)).content;
            assert!(matches!(content, Content::Unreadable { .. }), "{role}: {content:?}");
            let answer = match Wanted::of(role) {
                Wanted::Findings => "findings: []",
                Wanted::Fixes => "fixes: []",
                Wanted::Verdicts => "verdicts: []",
            };
            let content = parse(&format!("{echo}\n```yaml\n{answer}\n```\n"), Wanted::of(role)).content;
            assert!(!matches!(content, Content::Unreadable { .. }), "{role}: {content:?}");
        }
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
