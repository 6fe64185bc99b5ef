//! The ledger of deferred work, `deferred-work.md`: entries as `bmad-build` appends them, bullets as a code review writes
//! them, entries with ids and fields, and the free notes of older eras.
//!
//! Nothing is ever removed or moved; [`add_items`] appends.

use serde::Serialize;

use crate::page::{Line, Page, plain, spliced};

/// All deferred work of a project.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ledger {
    pub items: Vec<Item>,
}

/// One deferred item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
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
    pub shape: Shape,
}

/// How an item is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
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
pub struct NewItem {
    /// The file of the spec or story.
    pub source: String,
    pub summary: String,
    pub evidence: String,
}

/// Reads the ledger.
pub fn read(text: &str) -> Ledger {
    let page = Page::of(text);
    let mut reader = Reader::default();
    for line in page.lines.iter().filter(|line| line.is_prose()) {
        reader.line(line);
    }
    reader.close();
    Ledger { items: reader.items }
}

#[derive(Default)]
struct Reader {
    items: Vec<Item>,
    open: Option<Open>,
    /// The review that the current section comes from, by its heading `## Deferred from: …`.
    section: Option<String>,
}

/// The item that the next lines may belong to.
struct Open {
    item: Item,
    /// The indentation of its bullet in columns; an item with a heading has none.
    indent: Option<usize>,
    field: Field,
}

/// The fields of an item, by the names that any era uses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Text,
    Source,
    Evidence,
    Place,
    Severity,
    Status,
    Unknown,
}

impl Reader {
    /// Takes one line: it begins an item, continues one or ends one.
    fn line(&mut self, line: &Line<'_>) {
        if let Some((level, title)) = line.heading() {
            self.heading(level, title, line.number);
            return;
        }
        let text = line.text.trim();
        if text.is_empty() {
            return;
        }
        // Indentation decides whether a line continues the item above it.
        let indent = line.text.len() - line.text.trim_start().len();
        let bullet = text
            .strip_prefix(['-', '*', '+'])
            .filter(|rest| rest.starts_with([' ', '\t']))
            .map(str::trim_start);
        match (bullet, &mut self.open) {
            // A field of an item with a heading may have a bullet of its own.
            (Some(rest), Some(open)) if open.indent.map_or(!begins_item(rest), |own| indent > own) => {
                if !open.set(rest) {
                    open.more(text);
                }
            }
            // Any other bullet begins a new item.
            (Some(rest), _) => {
                self.close();
                self.open = Some(Open::bullet(rest, indent, line.number, self.section.as_deref()));
            }
            (None, Some(open)) if indent > open.indent.unwrap_or(0) || open.indent.is_none() => {
                if !open.set(text) {
                    // Under a heading, prose without indentation describes the item, not its last field.
                    if indent == 0 {
                        open.field = Field::Evidence;
                    }
                    open.more(text);
                }
            }
            (None, _) => self.close(),
        }
    }

    /// A heading is an item with an id, names the review of the items below it, or ends that section.
    fn heading(&mut self, level: usize, title: &str, line: usize) {
        self.close();
        if let Some((id, rest)) = id_of(title) {
            let mut item = Item::new(rest.to_string(), line, Shape::Numbered);
            item.id = Some(id);
            item.done = rest.starts_with("~~");
            item.source = self.section.clone();
            self.open = Some(Open { item, indent: None, field: Field::Unknown });
        } else if let Some((_, from)) =
            title.split_once(':').filter(|(label, _)| plain(label) == "deferred from")
        {
            self.section = Some(from.trim().to_string());
        } else if level <= 2 {
            self.section = None;
        }
    }

    /// Ends the open item. An item without text, such as a heading without a title, is left out.
    fn close(&mut self) {
        let Some(Open { mut item, .. }) = self.open.take() else { return };
        let closed = ["done", "closed", "resolved", "fixed", "complete", "completed"];
        // The first word decides: `done 2026-01-01` and `closed: see DW-9` are both closed.
        item.done |= item.status.as_deref().is_some_and(|status| {
            let word = status
                .split(|c: char| !c.is_alphanumeric())
                .find(|word| !word.is_empty())
                .unwrap_or_default();
            closed.contains(&word.to_ascii_lowercase().as_str())
        });
        if !item.text.trim().is_empty() {
            self.items.push(item);
        }
    }
}

impl Item {
    fn new(text: String, line: usize, shape: Shape) -> Item {
        Item {
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

impl Open {
    fn bullet(rest: &str, indent: usize, line: usize, section: Option<&str>) -> Open {
        let (ticked, rest) = match rest.get(..3).map(str::to_ascii_lowercase).as_deref() {
            Some("[x]") => (true, rest[3..].trim_start()),
            Some("[ ]") => (false, rest[3..].trim_start()),
            _ => (false, rest),
        };
        let shape = if section.is_some() { Shape::Review } else { Shape::Free };
        let mut open =
            Open { item: Item::new(String::new(), line, shape), indent: Some(indent), field: Field::Text };
        open.item.source = section.map(str::to_string);
        if matches!(field_of(rest), Some((Field::Source | Field::Text, _))) {
            open.item.shape = Shape::Entry;
            open.set(rest);
        } else {
            let (id, text) = id_of(rest).map_or((None, rest), |(id, text)| (Some(id), text));
            open.item.id = id;
            open.item.place = place(text);
            open.item.text = text.to_string();
        }
        // Some users strike an item out instead of ticking it.
        open.item.done = ticked || open.item.text.starts_with("~~");
        open
    }

    /// Takes a line `name: value`; returns false if its field is not known.
    fn set(&mut self, text: &str) -> bool {
        let Some((field, value)) = field_of(text) else { return false };
        // A review's bullet may continue with a word and a colon; such a line is text and must not replace the text before
        // it.
        if matches!(field, Field::Text) && self.item.shape != Shape::Entry {
            return false;
        }
        // Lines without a field of their own continue this one.
        self.field = field;
        let value = value.trim().trim_matches('`').to_string();
        match field {
            Field::Text => self.item.text = value,
            Field::Source => self.item.source = Some(value),
            Field::Evidence => self.item.evidence = Some(value),
            Field::Place => self.item.place = Some(value),
            Field::Severity => self.item.severity = Some(value),
            Field::Status => self.item.status = Some(value),
            Field::Unknown => {}
        }
        true
    }

    /// Appends a line to the field that was read last.
    fn more(&mut self, text: &str) {
        let to = match self.field {
            Field::Text => &mut self.item.text,
            Field::Evidence | Field::Unknown => self.item.evidence.get_or_insert_default(),
            Field::Source => self.item.source.get_or_insert_default(),
            Field::Place => self.item.place.get_or_insert_default(),
            Field::Severity => self.item.severity.get_or_insert_default(),
            Field::Status => self.item.status.get_or_insert_default(),
        };
        if !to.is_empty() {
            to.push('\n');
        }
        to.push_str(text);
    }
}

fn field_of(text: &str) -> Option<(Field, &str)> {
    let (name, value) = text.split_once(':')?;
    let field = match plain(name).replace([' ', '-'], "_").as_str() {
        "source_spec" | "source" | "origin" => Field::Source,
        "summary" => Field::Text,
        "evidence" | "reason" | "why" | "detail" => Field::Evidence,
        "location" | "place" | "file" => Field::Place,
        "severity" | "priority" => Field::Severity,
        "status" => Field::Status,
        _ => return None,
    };
    Some((field, value.trim_start_matches('*')))
}

/// Whether a bullet below an item with a heading is an item of its own.
fn begins_item(bullet: &str) -> bool {
    id_of(bullet).is_some() || bullet.starts_with("source_spec:")
}

/// Splits off the id of `DW-3: …` or `[DW-3] …`.
fn id_of(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start_matches(['[', '*', '`', '~']);
    let rest = text.strip_prefix("DW-")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let behind = rest[end..].trim_start_matches([']', '*', '`', ':', '-', '–', '—', ' ']);
    (end > 0).then(|| (format!("DW-{}", &rest[..end]), behind))
}

/// The place in the code that a text names as `[file:line]`. A link `[x](y)` is none.
fn place(text: &str) -> Option<String> {
    let (_, rest) = text.rsplit_once('[')?;
    let (inside, behind) = rest.split_once(']')?;
    let inside = inside.trim().trim_matches('`');
    let looks =
        inside.contains(['.', '/']) && !inside.contains(char::is_whitespace) && !behind.starts_with('(');
    looks.then(|| inside.to_string())
}

/// The ledger with these items appended; items that it already has are left out. An empty ledger gets a title.
#[must_use]
pub fn add(text: &str, items: &[NewItem]) -> String {
    let page = Page::of(text);
    let end = page.line_end();
    // An item is the same if its source and its text are the same; the evidence may have been reworded.
    let mut known: Vec<(Option<String>, String)> =
        read(text).items.into_iter().map(|item| (item.source, item.text)).collect();
    let mut new = String::new();
    for item in items {
        let [source, summary, evidence] =
            [&item.source, &item.summary, &item.evidence].map(|said| one_line(said));
        // The source is written in backticks, so it cannot contain any.
        let source = source.replace('`', "");
        let key =
            (Some(source.clone()).filter(|source| !source.is_empty()), summary.trim_matches('`').to_string());
        // Items that were added in this call count as known, too.
        if summary.is_empty() || known.contains(&key) {
            continue;
        }
        let lines = [
            format!("- source_spec: `{source}`"),
            format!("  summary: {summary}"),
            format!("  evidence: {evidence}"),
        ];
        lines.iter().for_each(|line| new.extend([line.as_str().trim_end(), end]));
        known.push(key);
    }
    if new.is_empty() {
        return text.to_string();
    }
    let before = match text.trim_start_matches('\u{feff}').trim().is_empty() {
        true => format!("# Deferred Work{end}{end}"),
        false if text.ends_with('\n') => end.to_string(),
        false => format!("{end}{end}"),
    };
    spliced(text, &[(text.len()..text.len(), format!("{before}{new}"))])
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn(text: &str) -> String {
        let items = read(text).items.into_iter().map(|item| {
            let Item { id, text, source, evidence, place, severity, status, done, line, shape } = item;
            let rest = [
                ("id", id),
                ("from", source),
                ("why", evidence),
                ("at", place),
                ("sev", severity),
                ("is", status),
            ];
            let rest: String =
                rest.into_iter().filter_map(|(name, said)| Some(format!(" {name}={:?}", said?))).collect();
            format!("{line} {shape:?} {} {text:?}{rest}", if done { "x" } else { "-" })
        });
        items.collect::<Vec<_>>().join("\n")
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
        insta::assert_snapshot!(drawn(LEDGER), @r#"
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

    fn new(source: &str, summary: &str) -> NewItem {
        NewItem { source: source.into(), summary: summary.into(), evidence: "it\nis so".into() }
    }

    #[test]
    fn what_is_added_stands_at_the_end_once() {
        assert_eq!(
            add("", &[new("a.md", "one"), new("a.md", "one")]),
            "# Deferred Work\n\n- source_spec: `a.md`\n  summary: one\n  evidence: it is so\n"
        );
        assert_eq!(
            add("# D\r\n- x", &[new("a.md", "one")]),
            "# D\r\n- x\r\n\r\n- source_spec: `a.md`\r\n  summary: one\r\n  evidence: it is so\r\n"
        );
        let once = add(LEDGER, &[new("b.md", "two"), new("b.md", "three")]);
        assert!(once.starts_with(LEDGER));
        assert_eq!(read(&once).items.len(), read(LEDGER).items.len() + 1);
        assert_eq!(add(&once, &[new("b.md", "three")]), once);
        assert_eq!(add(LEDGER, &[new("b.md", " ")]), LEDGER);
    }

    proptest! {
        #[test]
        fn any_ledger_keeps_what_it_has(
            text in "(?s)(\u{feff})?([-*#:`~\\[\\] \r\n aé]|- source_spec: |summary: |## Deferred from: |### DW-1: |status: |```\n){0,40}",
            summary in "[a-z][a-z:`#-]{0,12}"
        ) {
            let with = add(&text, &[new("s.md", &summary)]);
            prop_assert!(with.starts_with(&text));
            // In an open block of code nothing is an item.
            if !text.contains("```") {
                let last = read(&with).items.pop().and_then(|item| item.source);
                prop_assert_eq!(last.as_deref(), Some("s.md"));
                prop_assert_eq!(add(&with, &[new("s.md", &summary)]), with);
            }
        }
    }
}
