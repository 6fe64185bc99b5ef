//! The ledger of deferred work, `deferred-work.md`: entries as `bmad-build` appends them, bullets as a code review writes
//! them, entries with ids and fields, and the free notes of older eras.
//!
//! Nothing is ever removed or moved; [`add_items`] appends.

use std::{collections::BTreeMap, ops::Range};

use serde::Serialize;

use crate::{
    markdown::{MarkdownLine, MarkdownPage, apply_edits, normalize_title},
    story,
};

/// The file name of the ledger, in the folder for implementation artifacts.
pub const LEDGER_FILE: &str = "deferred-work.md";

/// All deferred work of a project.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeferredLedger {
    pub items: Vec<DeferredItem>,
}

/// One deferred item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeferredItem {
    /// The id, such as `DW-3`, where the item has one.
    pub id: Option<String>,
    pub text: String,
    /// The spec or the review that the item came from.
    pub source: Option<String>,
    pub evidence: Option<String>,
    /// The place in the code, as `file:line`.
    pub place: Option<String>,
    pub severity: Option<String>,
    /// The status as it is written.
    pub status: Option<String>,
    /// Whether the item is ticked, struck out, or has a status that says so.
    pub done: bool,
    pub line: usize,
    pub shape: DeferredShape,
}

/// How an item is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeferredShape {
    /// `- source_spec: …`, `summary: …`, `evidence: …`.
    Entry,
    /// A bullet under `## Deferred from: …`.
    Review,
    /// `### DW-3: …` with fields.
    Numbered,
    /// A bullet anywhere else.
    Free,
}

/// An item to be deferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDeferredItem {
    /// The file of the spec or story.
    pub source: String,
    pub summary: String,
    pub evidence: String,
}

/// Reads the ledger.
pub fn read_ledger(ledger_text: &str) -> DeferredLedger {
    let markdown = MarkdownPage::parse(ledger_text);
    let mut ledger_reader = LedgerReader::default();
    for line in markdown.lines.iter().filter(|line| line.is_prose()) {
        ledger_reader.read_line(line);
    }
    ledger_reader.close_item();
    DeferredLedger { items: ledger_reader.items }
}

#[derive(Default)]
struct LedgerReader {
    items: Vec<DeferredItem>,
    open_item: Option<OpenLedgerItem>,
    /// The review that the current section comes from, by its heading `## Deferred from: …`.
    review_section: Option<String>,
}

/// The item that the next lines may belong to.
struct OpenLedgerItem {
    item: DeferredItem,
    /// The indentation of its bullet in columns; an item with a heading has none.
    indent: Option<usize>,
    field: LedgerField,
}

/// The fields of an item, by the names that any era uses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LedgerField {
    Text,
    Source,
    Evidence,
    Place,
    Severity,
    Status,
    Unknown,
}

impl LedgerReader {
    /// Takes one line: it begins an item, continues one or ends one.
    fn read_line(&mut self, markdown_line: &MarkdownLine<'_>) {
        if let Some((level, title)) = markdown_line.heading() {
            self.read_heading(level, title, markdown_line.number);
            return;
        }
        let line_text = markdown_line.text.trim();
        if line_text.is_empty() {
            return;
        }
        // Indentation decides whether a line continues the item above it.
        let indent = markdown_line.text.len() - markdown_line.text.trim_start().len();
        let bullet = line_text
            .strip_prefix(['-', '*', '+'])
            .filter(|bullet_text| bullet_text.starts_with([' ', '\t']))
            .map(str::trim_start);
        match (bullet, &mut self.open_item) {
            // A field of an item with a heading may have a bullet of its own.
            (Some(bullet_text), Some(open_item))
                if open_item.indent.map_or(!begins_item(bullet_text), |own| indent > own) =>
            {
                if !open_item.set_field(bullet_text) {
                    open_item.continue_field(line_text);
                }
            }
            // Any other bullet begins a new item.
            (Some(bullet_text), _) => {
                self.close_item();
                self.open_item = Some(OpenLedgerItem::from_bullet(
                    bullet_text,
                    indent,
                    markdown_line.number,
                    self.review_section.as_deref(),
                ));
            }
            (None, Some(open_item)) if indent > open_item.indent.unwrap_or(0) || open_item.indent.is_none() => {
                if !open_item.set_field(line_text) {
                    // Under a heading, prose without indentation describes the item, not its last field.
                    if indent == 0 {
                        open_item.field = LedgerField::Evidence;
                    }
                    open_item.continue_field(line_text);
                }
            }
            (None, _) => self.close_item(),
        }
    }

    /// A heading is an item with an id, names the review of the items below it, or ends that section.
    fn read_heading(&mut self, level: usize, title: &str, line_number: usize) {
        self.close_item();
        if let Some((item_id, item_title)) = parse_id(title) {
            let mut item = DeferredItem::new(item_title.to_string(), line_number, DeferredShape::Numbered);
            item.id = Some(item_id);
            item.done = item_title.starts_with("~~");
            item.source = self.review_section.clone();
            self.open_item = Some(OpenLedgerItem { item, indent: None, field: LedgerField::Unknown });
        } else if let Some((_, source_name)) =
            title.split_once(':').filter(|(label, _)| normalize_title(label) == "deferred from")
        {
            self.review_section = Some(source_name.trim().to_string());
        } else if level <= 2 {
            self.review_section = None;
        }
    }

    /// Ends the open item. An item without text, such as a heading without a title, is left out.
    fn close_item(&mut self) {
        let Some(OpenLedgerItem { mut item, .. }) = self.open_item.take() else { return };
        let closed_words = ["done", "closed", "resolved", "fixed", "complete", "completed"];
        // The first word decides: `done 2026-01-01` and `closed: see DW-9` are both closed.
        item.done |= item.status.as_deref().is_some_and(|status| {
            let first_word = status
                .split(|character: char| !character.is_alphanumeric())
                .find(|word| !word.is_empty())
                .unwrap_or_default();
            closed_words.contains(&first_word.to_ascii_lowercase().as_str())
        });
        if !item.text.trim().is_empty() {
            self.items.push(item);
        }
    }
}

impl DeferredItem {
    fn new(text: String, line: usize, shape: DeferredShape) -> DeferredItem {
        DeferredItem {
            id: None,
            text,
            source: None,
            evidence: None,
            place: None,
            severity: None,
            status: None,
            done: false,
            line,
            shape,
        }
    }
}

impl OpenLedgerItem {
    fn from_bullet(bullet_text: &str, indent: usize, line_number: usize, section: Option<&str>) -> OpenLedgerItem {
        let (is_ticked, bullet_text) = match bullet_text.get(..3).map(str::to_ascii_lowercase).as_deref() {
            Some("[x]") => (true, bullet_text[3..].trim_start()),
            Some("[ ]") => (false, bullet_text[3..].trim_start()),
            _ => (false, bullet_text),
        };
        let shape = if section.is_some() { DeferredShape::Review } else { DeferredShape::Free };
        let mut open_item = OpenLedgerItem {
            item: DeferredItem::new(String::new(), line_number, shape),
            indent: Some(indent),
            field: LedgerField::Text,
        };
        open_item.item.source = section.map(str::to_string);
        if matches!(parse_field(bullet_text), Some((LedgerField::Source | LedgerField::Text, _))) {
            open_item.item.shape = DeferredShape::Entry;
            open_item.set_field(bullet_text);
        } else {
            let (item_id, item_text) =
                parse_id(bullet_text).map_or((None, bullet_text), |(item_id, item_text)| (Some(item_id), item_text));
            open_item.item.id = item_id;
            open_item.item.place = find_place(item_text);
            open_item.item.text = item_text.to_string();
        }
        // An item may be struck out instead of ticked.
        open_item.item.done = is_ticked || open_item.item.text.starts_with("~~");
        open_item
    }

    /// Takes a line `name: value`; returns false if its field is not known.
    fn set_field(&mut self, line_text: &str) -> bool {
        let Some((field, value)) = parse_field(line_text) else { return false };
        // A review's bullet may continue with a word and a colon; such a line is text and must not replace the text before
        // it.
        if matches!(field, LedgerField::Text) && self.item.shape != DeferredShape::Entry {
            return false;
        }
        // Lines without a field of their own continue this one.
        self.field = field;
        let value = value.trim().trim_matches('`').to_string();
        match field {
            LedgerField::Text => self.item.text = value,
            LedgerField::Source => self.item.source = Some(value),
            LedgerField::Evidence => self.item.evidence = Some(value),
            LedgerField::Place => self.item.place = Some(value),
            LedgerField::Severity => self.item.severity = Some(value),
            LedgerField::Status => self.item.status = Some(value),
            LedgerField::Unknown => {}
        }
        true
    }

    /// Appends a line to the field that was read last.
    fn continue_field(&mut self, line_text: &str) {
        let continued = match self.field {
            LedgerField::Text => &mut self.item.text,
            LedgerField::Evidence | LedgerField::Unknown => self.item.evidence.get_or_insert_default(),
            LedgerField::Source => self.item.source.get_or_insert_default(),
            LedgerField::Place => self.item.place.get_or_insert_default(),
            LedgerField::Severity => self.item.severity.get_or_insert_default(),
            LedgerField::Status => self.item.status.get_or_insert_default(),
        };
        if !continued.is_empty() {
            continued.push('\n');
        }
        continued.push_str(line_text);
    }
}

fn parse_field(line_text: &str) -> Option<(LedgerField, &str)> {
    let (field_name, field_value) = line_text.split_once(':')?;
    let field = match normalize_title(field_name).replace([' ', '-'], "_").as_str() {
        "source_spec" | "source" | "origin" => LedgerField::Source,
        "summary" => LedgerField::Text,
        "evidence" | "reason" | "why" | "detail" => LedgerField::Evidence,
        "location" | "place" | "file" => LedgerField::Place,
        "severity" | "priority" => LedgerField::Severity,
        "status" => LedgerField::Status,
        _ => return None,
    };
    Some((field, field_value.trim_start_matches('*')))
}

/// Whether a bullet below an item with a heading is an item of its own.
fn begins_item(bullet_text: &str) -> bool {
    parse_id(bullet_text).is_some() || bullet_text.starts_with("source_spec:")
}

/// Splits off the id of `DW-3: …` or `[DW-3] …`.
fn parse_id(item_text: &str) -> Option<(String, &str)> {
    let item_text = item_text.trim_start_matches(['[', '*', '`', '~']);
    let after_prefix = item_text.strip_prefix("DW-")?;
    let digits_end = after_prefix.find(|character: char| !character.is_ascii_digit()).unwrap_or(after_prefix.len());
    let after_id = after_prefix[digits_end..].trim_start_matches([']', '*', '`', ':', '-', '–', '—', ' ']);
    (digits_end > 0).then(|| (format!("DW-{}", &after_prefix[..digits_end]), after_id))
}

/// The place in the code that a text names as `[file:line]`. A link `[x](y)` is none.
fn find_place(item_text: &str) -> Option<String> {
    let (_, after_open) = item_text.rsplit_once('[')?;
    let (bracketed, after_bracket) = after_open.split_once(']')?;
    let bracketed = bracketed.trim().trim_matches('`');
    let looks_like_place =
        bracketed.contains(['.', '/']) && !bracketed.contains(char::is_whitespace) && !after_bracket.starts_with('(');
    looks_like_place.then(|| bracketed.to_string())
}

/// The ledger with these items appended; items that it already has are left out. An empty ledger gets a title.
#[must_use]
pub fn add_items(ledger_text: &str, items: &[NewDeferredItem]) -> String {
    let markdown = MarkdownPage::parse(ledger_text);
    let line_ending = markdown.line_ending();
    // An item is the same if its source and its text are the same; the evidence may have been reworded.
    let mut known_items: Vec<(Option<String>, String)> =
        read_ledger(ledger_text).items.into_iter().map(|item| (item.source, item.text)).collect();
    // New items by the place where they are written: below the heading of their story, or at the end.
    let mut lines_by_place: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for item in items {
        let [source, summary, evidence] =
            [&item.source, &item.summary, &item.evidence].map(|field_text| to_one_line(field_text));
        // The source is written in backticks, so it cannot contain any.
        let source = source.replace('`', "");
        let item_key =
            (Some(source.clone()).filter(|source| !source.is_empty()), summary.trim_matches('`').to_string());
        // Items that were added in this call count as known, too.
        if summary.is_empty() || known_items.contains(&item_key) {
            continue;
        }
        let item_lines =
            [format!("- source_spec: `{source}`"), format!("  summary: {summary}"), format!("  evidence: {evidence}")];
        let place = find_story_place(&markdown, &source).unwrap_or(ledger_text.len());
        let place_lines = lines_by_place.entry(place).or_default();
        place_lines.extend(item_lines.iter().map(|line| line.trim_end().to_string()));
        known_items.push(item_key);
    }
    let write_lines = |(place, place_lines): (usize, Vec<String>)| {
        let new_text = if place < ledger_text.len() {
            // Behind the last line of the section, before its line ending.
            place_lines.iter().map(|line| format!("{line_ending}{line}")).collect()
        } else {
            let separator = match ledger_text.trim_start_matches('\u{feff}').trim().is_empty() {
                true => format!("# Deferred Work{line_ending}{line_ending}"),
                false if ledger_text.ends_with('\n') => line_ending.to_string(),
                false => format!("{line_ending}{line_ending}"),
            };
            let new_lines: String = place_lines.iter().map(|line| format!("{line}{line_ending}")).collect();
            format!("{separator}{new_lines}")
        };
        (place..place, new_text)
    };
    let edits: Vec<(Range<usize>, String)> = lines_by_place.into_iter().map(write_lines).collect();
    apply_edits(ledger_text, &edits)
}

/// The end of the last written line below the heading of a story: `## Deferred from: code review of 1-2-log-in`.
fn find_story_place(markdown: &MarkdownPage<'_>, source: &str) -> Option<usize> {
    let story_key = story::key_from_path(source)?;
    let story_number = story_key.story_number()?.to_string();
    let names_story = |title: &str| {
        let title = title.to_lowercase();
        let mut words = title.split(|character: char| character.is_whitespace() || "():,`/".contains(character));
        words.any(|word| {
            let word = word.trim_end_matches(".md").trim_end_matches('.');
            word == story_number || word == story_number.replace('.', "-") || word == story_key.as_str().to_lowercase()
        })
    };
    let section = markdown.sections().into_iter().rev().find(|section| names_story(section.title))?;
    let mut section_lines = markdown.lines[section.heading_index..section.line_range.end].iter();
    let last_line = section_lines.rfind(|line| !line.is_blank())?;
    Some(last_line.start_offset + last_line.text.len())
}

fn to_one_line(field_text: &str) -> String {
    field_text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn render_ledger(item_text: &str) -> String {
        let items = read_ledger(item_text).items.into_iter().map(|item| {
            let DeferredItem { id, text: item_text, source, evidence, place, severity, status, done, line, shape } =
                item;
            let optional_fields =
                [("id", id), ("from", source), ("why", evidence), ("at", place), ("sev", severity), ("is", status)];
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
        let new_item = |source: &str| NewDeferredItem {
            source: source.into(),
            summary: format!("about {source}"),
            evidence: "e".into(),
        };
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
        NewDeferredItem { source: source.into(), summary: summary.into(), evidence: "it\nis so".into() }
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
    }
}
