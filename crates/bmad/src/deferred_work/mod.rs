//! The ledger of deferred work, `deferred-work.md`: entries as `bmad-build` appends them, bullets as a code review writes
//! them, entries with ids and fields, and the free notes of older eras.
//!
//! Nothing is ever removed or moved: [`add_items`] appends, and [`close_items`] marks items as done where they stand.

mod edit;

use std::collections::{BTreeMap, BTreeSet};

use tribunal_json::Serialize;

pub use edit::{ClosedLedger, LedgerClosing, NewDeferredItem, add_items, close_items, ids_of_others};

use crate::markdown::{MarkdownLine, MarkdownPage, normalize_title};

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
    /// How the item was closed.
    pub resolution: Option<String>,
    /// Whether the item is ticked, struck out, ends with ` — done DATE`, or has a status that says so.
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

/// Reads the ledger.
pub fn read_ledger(ledger_text: &str) -> DeferredLedger {
    let located_items = locate_items(&MarkdownPage::parse(ledger_text));
    // An item without text, such as a heading without a title, is left out.
    let with_text = located_items.into_iter().filter(|located_item| !located_item.item.text.trim().is_empty());
    DeferredLedger { items: with_text.map(|located_item| located_item.item).collect() }
}

/// Reads the items and where their lines are. An item without text is among them.
fn locate_items(markdown: &MarkdownPage<'_>) -> Vec<LocatedItem> {
    let mut ledger_reader = LedgerReader::default();
    for line in markdown.lines.iter().filter(|line| line.is_prose()) {
        ledger_reader.read_line(line);
    }
    ledger_reader.close_item();
    ledger_reader.items
}

/// The items that can be closed, by the numbers of their ids.
fn group_by_number(markdown: &MarkdownPage<'_>) -> BTreeMap<String, Vec<LocatedItem>> {
    let mut items_by_number: BTreeMap<String, Vec<LocatedItem>> = BTreeMap::new();
    for located_item in locate_items(markdown) {
        // A bullet without a text is not an item, and the mark at its end would become its text.
        let is_item = located_item.item.shape == DeferredShape::Numbered || !located_item.item.text.trim().is_empty();
        let item_number = located_item.item.id.as_deref().and_then(normalize_id);
        if let Some(item_number) = item_number.filter(|_| is_item) {
            items_by_number.entry(item_number).or_default().push(located_item);
        }
    }
    items_by_number
}

/// The numbers of the ids of all items that can be closed, as [`normalize_id`] returns them.
pub(crate) fn list_item_numbers(ledger_text: &str) -> BTreeSet<String> {
    group_by_number(&MarkdownPage::parse(ledger_text)).into_keys().collect()
}

/// The digits of an id without leading zeros; `None` if the text is not an id.
pub(crate) fn normalize_id(id_text: &str) -> Option<String> {
    let id_text = id_text.trim();
    let digits = strip_id_prefix(id_text).unwrap_or(id_text);
    let is_number = !digits.is_empty() && digits.chars().all(|character| character.is_ascii_digit());
    is_number.then(|| digits.trim_start_matches('0').to_string())
}

/// An item and its lines in the file.
struct LocatedItem {
    item: DeferredItem,
    lines: ItemLines,
}

/// The lines of an item, by their numbers.
struct ItemLines {
    /// The line of the heading or of the bullet.
    first: usize,
    /// The last line that belongs to the item.
    last: usize,
    /// The last line of the item's text.
    last_text: usize,
    /// The line on which the last known field begins.
    last_field: Option<usize>,
    /// The line of the status that counts.
    status: Option<usize>,
    /// The line of the resolution that counts.
    resolution: Option<usize>,
    /// Whether the bullet has a box.
    has_box: bool,
}

impl ItemLines {
    fn from_first_line(line_number: usize) -> ItemLines {
        ItemLines {
            first: line_number,
            last: line_number,
            last_text: line_number,
            last_field: None,
            status: None,
            resolution: None,
            has_box: false,
        }
    }
}

#[derive(Default)]
struct LedgerReader {
    items: Vec<LocatedItem>,
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
    lines: ItemLines,
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
    Resolution,
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
        match (strip_bullet(line_text), &mut self.open_item) {
            // A field of an item with a heading may have a bullet of its own.
            (Some(bullet_text), Some(open_item))
                if open_item.indent.map_or(!begins_item(bullet_text), |own| indent > own) =>
            {
                if !open_item.set_field(bullet_text, markdown_line.number) {
                    open_item.continue_field(line_text, markdown_line.number);
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
                if !open_item.set_field(line_text, markdown_line.number) {
                    // Under a heading, prose without indentation describes the item, not its last field.
                    if indent == 0 {
                        open_item.field = LedgerField::Evidence;
                    }
                    open_item.continue_field(line_text, markdown_line.number);
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
            // The marks of a struck-out heading may stand before its id.
            item.done = title.starts_with("~~") || item_title.starts_with("~~");
            item.source = self.review_section.clone();
            let lines = ItemLines::from_first_line(line_number);
            self.open_item = Some(OpenLedgerItem { item, indent: None, field: LedgerField::Unknown, lines });
        } else if let Some((_, source_name)) =
            title.split_once(':').filter(|(label, _)| normalize_title(label) == "deferred from")
        {
            self.review_section = Some(source_name.trim().to_string());
        } else if level <= 2 {
            self.review_section = None;
        }
    }

    /// Ends the open item.
    fn close_item(&mut self) {
        let Some(OpenLedgerItem { mut item, indent, lines, .. }) = self.open_item.take() else { return };
        let closed_words = ["done", "closed", "resolved", "fixed", "complete", "completed"];
        // The first word decides: `done 2026-01-01` and `closed: see DW-9` are both closed.
        item.done |= item.status.as_deref().is_some_and(|status| {
            let first_word = status
                .split(|character: char| !character.is_alphanumeric())
                .find(|word| !word.is_empty())
                .unwrap_or_default();
            closed_words.contains(&first_word.to_ascii_lowercase().as_str())
        });
        // A bullet without a box is closed by a mark at its end.
        item.done |= indent.is_some() && ends_with_done_mark(&item.text);
        self.items.push(LocatedItem { item, lines });
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
            resolution: None,
            done: false,
            line,
            shape,
        }
    }
}

impl OpenLedgerItem {
    fn from_bullet(bullet_text: &str, indent: usize, line_number: usize, section: Option<&str>) -> OpenLedgerItem {
        let (box_state, bullet_text) = split_checkbox(bullet_text);
        let shape = if section.is_some() { DeferredShape::Review } else { DeferredShape::Free };
        let mut open_item = OpenLedgerItem {
            item: DeferredItem::new(String::new(), line_number, shape),
            indent: Some(indent),
            field: LedgerField::Text,
            lines: ItemLines { has_box: box_state.is_some(), ..ItemLines::from_first_line(line_number) },
        };
        open_item.item.source = section.map(str::to_string);
        if matches!(parse_field(bullet_text), Some((LedgerField::Source | LedgerField::Text, _))) {
            open_item.item.shape = DeferredShape::Entry;
            open_item.set_field(bullet_text, line_number);
        } else {
            let (item_id, item_text) =
                parse_id(bullet_text).map_or((None, bullet_text), |(item_id, item_text)| (Some(item_id), item_text));
            open_item.item.id = item_id;
            open_item.item.place = find_place(item_text);
            open_item.item.text = item_text.to_string();
        }
        // An item may be struck out instead of ticked, with its id or without it.
        open_item.item.done =
            box_state == Some(true) || bullet_text.starts_with("~~") || open_item.item.text.starts_with("~~");
        open_item
    }

    /// Takes a line `name: value`; returns false if its field is not known.
    fn set_field(&mut self, line_text: &str, line_number: usize) -> bool {
        let Some((field, value)) = parse_field(line_text) else { return false };
        // A review's bullet may continue with a word and a colon; such a line is text and must not replace the text before
        // it.
        if matches!(field, LedgerField::Text) && self.item.shape != DeferredShape::Entry {
            return false;
        }
        // Lines without a field of their own continue this one.
        self.field = field;
        self.lines.last = line_number;
        self.lines.last_field = Some(line_number);
        let value = value.trim().trim_matches('`').to_string();
        match field {
            LedgerField::Text => {
                self.lines.last_text = line_number;
                self.item.text = value;
            }
            LedgerField::Source => self.item.source = Some(value),
            LedgerField::Evidence => self.item.evidence = Some(value),
            LedgerField::Place => self.item.place = Some(value),
            LedgerField::Severity => self.item.severity = Some(value),
            LedgerField::Status => {
                self.lines.status = Some(line_number);
                self.item.status = Some(value);
            }
            LedgerField::Resolution => {
                self.lines.resolution = Some(line_number);
                self.item.resolution = Some(value);
            }
            LedgerField::Unknown => {}
        }
        true
    }

    /// Appends a line to the field that was read last.
    fn continue_field(&mut self, line_text: &str, line_number: usize) {
        self.lines.last = line_number;
        if self.field == LedgerField::Text {
            self.lines.last_text = line_number;
        }
        let continued = match self.field {
            LedgerField::Text => &mut self.item.text,
            LedgerField::Evidence | LedgerField::Unknown => self.item.evidence.get_or_insert_default(),
            LedgerField::Source => self.item.source.get_or_insert_default(),
            LedgerField::Place => self.item.place.get_or_insert_default(),
            LedgerField::Severity => self.item.severity.get_or_insert_default(),
            LedgerField::Status => self.item.status.get_or_insert_default(),
            LedgerField::Resolution => self.item.resolution.get_or_insert_default(),
        };
        if !continued.is_empty() {
            continued.push('\n');
        }
        continued.push_str(line_text);
    }
}

/// The text behind the bullet of a line; `None` if the line has no bullet.
fn strip_bullet(line_text: &str) -> Option<&str> {
    let bullet_text = line_text.strip_prefix(['-', '*', '+']).filter(|text| text.starts_with([' ', '\t']))?;
    Some(bullet_text.trim_start())
}

/// Splits off the box of a bullet: whether it is ticked, `None` without a box, and the text behind it.
fn split_checkbox(bullet_text: &str) -> (Option<bool>, &str) {
    match bullet_text.get(..3) {
        Some("[x]" | "[X]") => (Some(true), bullet_text[3..].trim_start()),
        Some("[ ]") => (Some(false), bullet_text[3..].trim_start()),
        _ => (None, bullet_text),
    }
}

/// Whether a text ends with the mark of a closed bullet: ` — done 2026-01-02`.
fn ends_with_done_mark(item_text: &str) -> bool {
    item_text.trim_end().rsplit_once(" — done ").is_some_and(|(_, date_text)| {
        // A time may follow the date; `done 3 times` is a remark.
        let is_date_character = |character: char| !character.is_alphabetic() || matches!(character, 'T' | 'Z');
        date_text.starts_with(|character: char| character.is_ascii_digit()) && date_text.chars().all(is_date_character)
    })
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
        "resolution" => LedgerField::Resolution,
        _ => return None,
    };
    Some((field, field_value.trim_start_matches('*')))
}

/// Whether a bullet below an item with a heading is an item of its own.
fn begins_item(bullet_text: &str) -> bool {
    let (_, bullet_text) = split_checkbox(bullet_text);
    parse_id(bullet_text).is_some() || bullet_text.starts_with("source_spec:")
}

/// Splits off the id of `DW-3: …` or `[DW-3] …`.
fn parse_id(item_text: &str) -> Option<(String, &str)> {
    let item_text = item_text.trim_start_matches(['[', '*', '`', '~']);
    let after_prefix = strip_id_prefix(item_text)?;
    let digits_end = after_prefix.find(|character: char| !character.is_ascii_digit()).unwrap_or(after_prefix.len());
    let after_id = after_prefix[digits_end..].trim_start_matches([']', '*', '`', ':', '-', '–', '—', ' ']);
    (digits_end > 0).then(|| (format!("DW-{}", &after_prefix[..digits_end]), after_id))
}

/// The text behind `DW-`, in any case.
fn strip_id_prefix(id_text: &str) -> Option<&str> {
    id_text.get(..3).filter(|prefix| prefix.eq_ignore_ascii_case("DW-")).map(|_| &id_text[3..])
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

#[cfg(test)]
mod tests;
