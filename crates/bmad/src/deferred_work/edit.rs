//! Changes the ledger: appends new items in the dialect that the ledger uses, and closes items by their ids. Every other
//! byte stays as it is.
//!
//! Doing the same twice changes nothing the second time. Which items a story closes is decided by the caller.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use super::{
    DeferredShape, LocatedItem, group_by_number, locate_items, normalize_id, parse_field, parse_id, split_checkbox,
    strip_bullet, strip_id_prefix,
};
use crate::{
    markdown::{MarkdownLine, MarkdownLineKind, MarkdownPage, apply_edits, escape_comments},
    story,
};

/// An item to be deferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDeferredItem {
    /// The file of the spec or story.
    pub source: String,
    pub summary: String,
    pub evidence: String,
    /// The severity; empty if it is not known.
    pub severity: String,
    /// The place in the code, as `file:line`; empty if it is not known.
    pub place: String,
}

/// How items are closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerClosing {
    /// The date, as `2026-01-02`.
    pub date: String,
    /// What closed the items, such as the key of a story; empty if there is nothing to say.
    pub resolution: String,
}

/// The ledger after items were closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedLedger {
    pub ledger_text: String,
    /// The ids of the items that were closed, as the ledger has them. Items that were done already are not among them.
    pub closed: Vec<String>,
    /// The ids that no item has, as they were given.
    pub unknown: Vec<String>,
    /// The ids that several items have, as the ledger has them. None of these items was closed.
    pub ambiguous: Vec<String>,
}

/// A range of bytes and the text that replaces them.
type ByteEdit = (Range<usize>, String);

/// What makes two items the same. The evidence may have been reworded, and the file may have been moved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ItemFingerprint {
    /// The name of the source's file without directory and extension.
    source: String,
    summary: String,
}

impl ItemFingerprint {
    fn from_texts(source: &str, summary: &str) -> ItemFingerprint {
        ItemFingerprint { source: normalize_source(source), summary: normalize_summary(summary) }
    }

    fn from_located(located_item: &LocatedItem) -> ItemFingerprint {
        let item = &located_item.item;
        ItemFingerprint::from_texts(item.source.as_deref().unwrap_or_default(), &item.text)
    }
}

fn normalize_source(source: &str) -> String {
    let source = to_one_line(&source.replace('`', "")).to_lowercase();
    let file_name = source.rsplit(['/', '\\']).map(str::trim).find(|part| !part.is_empty()).unwrap_or_default();
    // `story 1.2` has no extension.
    let is_extension = |extension: &str| {
        extension.len() <= 5
            && extension.starts_with(|character: char| character.is_ascii_alphabetic())
            && extension.chars().all(|character| character.is_ascii_alphanumeric())
    };
    match file_name.rsplit_once('.') {
        Some((file_stem, extension)) if !file_stem.is_empty() && is_extension(extension) => file_stem.to_string(),
        _ => file_name.to_string(),
    }
}

fn normalize_summary(summary: &str) -> String {
    // What was escaped when the item was written is the same text.
    let summary = summary.replace('`', "").replace("&lt;!--", "<!--").replace("--&gt;", "-->");
    let summary = to_one_line(&summary).to_lowercase();
    let is_end_mark = |character: char| {
        character.is_whitespace() || character.is_ascii_punctuation() || "…–—‘’“”«»。，！？、".contains(character)
    };
    let trimmed_summary = summary.trim_matches(is_end_mark).to_string();
    // A text of nothing but punctuation is compared as it is.
    if trimmed_summary.is_empty() { summary } else { trimmed_summary }
}

/// How a ledger writes its items.
enum LedgerDialect {
    /// `- source_spec: …`, with a line for the severity if the ledger has such lines already.
    Entries { has_severity: bool },
    /// `### DW-3: …` with fields, and the number of the next item.
    Numbered { next_number: u64 },
}

impl LedgerDialect {
    fn detect(markdown: &MarkdownPage<'_>, located_items: &[LocatedItem]) -> LedgerDialect {
        let mut items = located_items.iter().map(|located_item| &located_item.item);
        if items.clone().any(|item| item.shape == DeferredShape::Numbered) {
            return LedgerDialect::Numbered { next_number: find_highest_number(markdown) + 1 };
        }
        LedgerDialect::Entries {
            has_severity: items.any(|item| item.shape == DeferredShape::Entry && item.severity.is_some()),
        }
    }

    /// The lines of a new item; `None` if its summary cannot be a heading of this dialect.
    fn format_item(&mut self, new_item: &NewDeferredItem) -> Option<Vec<String>> {
        let item_lines = match self {
            LedgerDialect::Entries { has_severity } => format_entry(new_item, *has_severity),
            LedgerDialect::Numbered { next_number } => {
                let item_lines = format_numbered(new_item, *next_number)?;
                *next_number += 1;
                item_lines
            }
        };
        Some(item_lines.iter().map(|line| line.trim_end().to_string()).collect())
    }
}

fn format_entry(new_item: &NewDeferredItem, has_severity: bool) -> Vec<String> {
    // The source is written in backticks, so it cannot contain any.
    let source = to_one_line(&new_item.source).replace('`', "");
    let severity = to_one_line(&new_item.severity);
    let mut item_lines = vec![
        format!("- source_spec: `{source}`"),
        format!("  summary: {}", to_one_line(&new_item.summary)),
        format!("  evidence: {}", to_one_line(&new_item.evidence)),
    ];
    if has_severity && !severity.is_empty() {
        item_lines.push(format!("  severity: {severity}"));
    }
    item_lines
}

fn format_numbered(new_item: &NewDeferredItem, item_number: u64) -> Option<Vec<String>> {
    let summary = to_ledger_line(&new_item.summary);
    // Marks behind the id are read as a part of the id, and two tildes would strike the item out.
    let title = summary.trim_start_matches([']', '*', '`', ':', '-', '–', '—', ' ', '~']);
    if title.trim_end_matches(['#', ' ']).is_empty() {
        return None;
    }
    // The origin is always there: without it, the item would get the origin of the section above it.
    let mut item_lines = vec![
        format!("### DW-{item_number}: {title}"),
        format!("origin: {}", to_ledger_line(&new_item.source).replace('`', "")),
    ];
    let optional_fields =
        [("location", &new_item.place), ("severity", &new_item.severity), ("reason", &new_item.evidence)];
    for (field_name, field_text) in optional_fields {
        let field_text = to_ledger_line(field_text);
        if !field_text.is_empty() {
            item_lines.push(format!("{field_name}: {field_text}"));
        }
    }
    item_lines.push("status: open".to_string());
    Some(item_lines)
}

/// The highest number among the ids of headings and bullets, those without a text included.
fn find_highest_number(markdown: &MarkdownPage<'_>) -> u64 {
    let prose_lines = markdown.lines.iter().filter(|line| line.is_prose());
    let numbers = prose_lines.filter_map(|line| {
        let item_text = match line.heading() {
            Some((_, title)) => title,
            None => split_checkbox(strip_bullet(line.text.trim())?).1,
        };
        let (item_id, _) = parse_id(item_text)?;
        // A number beyond this range is not one that items were counted with.
        strip_id_prefix(&item_id)?.parse::<u32>().ok()
    });
    numbers.max().map_or(0, u64::from)
}

/// The ledger with these items appended, in its dialect; items that it already has are left out. An empty ledger gets a
/// title.
#[must_use]
pub fn add_items(ledger_text: &str, items: &[NewDeferredItem]) -> String {
    let markdown = MarkdownPage::parse(ledger_text);
    let located_items = locate_items(&markdown);
    let mut known_items: BTreeSet<ItemFingerprint> = located_items.iter().map(ItemFingerprint::from_located).collect();
    let mut dialect = LedgerDialect::detect(&markdown, &located_items);
    // New items by the place where they are written: below the heading of their story, or at the end.
    let mut lines_by_place: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for item in items {
        let fingerprint = ItemFingerprint::from_texts(&item.source, &item.summary);
        // Items that were added in this call count as known, too.
        if fingerprint.summary.is_empty() || known_items.contains(&fingerprint) {
            continue;
        }
        let Some(item_lines) = dialect.format_item(item) else { continue };
        let is_numbered = matches!(dialect, LedgerDialect::Numbered { .. });
        // A heading between the items of a section would end that section, so numbered items go to the end.
        let story_place = if is_numbered { None } else { find_story_place(&markdown, &item.source) };
        let place_lines = lines_by_place.entry(story_place.unwrap_or(ledger_text.len())).or_default();
        if is_numbered && !place_lines.is_empty() {
            place_lines.push(String::new());
        }
        place_lines.extend(item_lines);
        known_items.insert(fingerprint);
    }
    let edits: Vec<ByteEdit> = lines_by_place
        .into_iter()
        .map(|(place, place_lines)| (place..place, format_new_lines(&markdown, place, &place_lines)))
        .collect();
    apply_edits(ledger_text, &edits)
}

/// The text of new lines at a place: behind the last line of a section, before its line ending, or at the end of the file.
fn format_new_lines(markdown: &MarkdownPage<'_>, place: usize, new_lines: &[String]) -> String {
    let (ledger_text, line_ending) = (markdown.text, markdown.line_ending());
    if place < ledger_text.len() {
        return new_lines.iter().map(|line| format!("{line_ending}{line}")).collect();
    }
    let separator = match ledger_text.trim_start_matches('\u{feff}').trim().is_empty() {
        true => format!("# Deferred Work{line_ending}{line_ending}"),
        false if ledger_text.ends_with('\n') => line_ending.to_string(),
        false => format!("{line_ending}{line_ending}"),
    };
    let new_lines: String = new_lines.iter().map(|line| format!("{line}{line_ending}")).collect();
    format!("{separator}{new_lines}")
}

/// The end of the last written line below the heading of a story: `## Deferred from: code review of 1-2-log-in`.
fn find_story_place(markdown: &MarkdownPage<'_>, source: &str) -> Option<usize> {
    let story_key = story::key_from_path(&to_one_line(source).replace('`', ""))?;
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

/// The ledger with these items marked as done. An id is written `DW-5`, `dw-5` or `5`. If several items have it and one of them is open,
/// none is closed: which one is meant must not be guessed.
#[must_use]
pub fn close_items(ledger_text: &str, ids: &[String], closing: &LedgerClosing) -> ClosedLedger {
    let markdown = MarkdownPage::parse(ledger_text);
    let mut items_by_number = group_by_number(&markdown);
    let closing_marks = ClosingMarks {
        markdown: &markdown,
        done_text: format!("done {}", to_ledger_line(&closing.date)).trim_end().to_string(),
        resolution: to_ledger_line(&closing.resolution),
    };
    let mut closed: Vec<String> = Vec::new();
    let (mut unknown, mut ambiguous): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let mut edits: Vec<ByteEdit> = Vec::new();
    for id in ids {
        let Some(items) = normalize_id(id).and_then(|item_number| items_by_number.get_mut(&item_number)) else {
            if !unknown.contains(id) {
                unknown.push(id.clone());
            }
            continue;
        };
        if items.len() > 1 && items.iter().any(|located_item| !located_item.item.done) {
            let written_id = items.first().and_then(|located_item| located_item.item.id.clone());
            let new_id = written_id.filter(|written_id| !ambiguous.contains(written_id));
            ambiguous.extend(new_id);
            continue;
        }
        // The items are taken out, so that an id that is given twice closes them once.
        let open_items: Vec<LocatedItem> = items.drain(..).filter(|located_item| !located_item.item.done).collect();
        for open_item in &open_items {
            edits.extend(closing_marks.make_edits(open_item));
            let closed_id = open_item.item.id.clone().filter(|closed_id| !closed.contains(closed_id));
            closed.extend(closed_id);
        }
    }
    edits.sort_by_key(|(range, _)| range.start);
    ClosedLedger { ledger_text: apply_edits(ledger_text, &edits), closed, unknown, ambiguous }
}

/// The ids among these that the ledger has not given to one of `new_items`. What is left by the work that closes `ids` is new: its id
/// can only be named by accident.
#[must_use]
pub fn ids_of_others(ledger_text: &str, ids: &[String], new_items: &[NewDeferredItem]) -> Vec<String> {
    let new_items: BTreeSet<ItemFingerprint> =
        new_items.iter().map(|item| ItemFingerprint::from_texts(&item.source, &item.summary)).collect();
    let located_items = locate_items(&MarkdownPage::parse(ledger_text));
    let is_new = |located_item: &&LocatedItem| new_items.contains(&ItemFingerprint::from_located(located_item));
    let new_ids = located_items.iter().filter(is_new).filter_map(|located_item| located_item.item.id.as_deref());
    let new_numbers: BTreeSet<String> = new_ids.filter_map(normalize_id).collect();
    let is_other = |id: &&String| normalize_id(id).is_none_or(|item_number| !new_numbers.contains(&item_number));
    ids.iter().filter(is_other).cloned().collect()
}

/// What is written where an item is closed.
struct ClosingMarks<'p, 't> {
    markdown: &'p MarkdownPage<'t>,
    /// The new status: `done 2026-01-02`.
    done_text: String,
    resolution: String,
}

impl ClosingMarks<'_, '_> {
    fn make_edits(&self, located_item: &LocatedItem) -> Vec<ByteEdit> {
        match located_item.item.shape {
            DeferredShape::Numbered => self.close_numbered(located_item),
            DeferredShape::Entry | DeferredShape::Review | DeferredShape::Free => self.close_bullet(located_item),
        }
    }

    /// Sets the status and adds the resolution, each where the item has such a line, otherwise behind its fields.
    fn close_numbered(&self, located_item: &LocatedItem) -> Vec<ByteEdit> {
        let lines = &located_item.lines;
        let mut edits = Vec::new();
        // A resolution from an earlier time, when the item was closed before, is replaced.
        let mut new_resolution = Some(self.resolution.as_str()).filter(|resolution| !resolution.is_empty());
        if let (Some(resolution_line), Some(resolution)) = (self.find_line(lines.resolution), new_resolution) {
            edits.extend(replace_value(resolution_line, resolution));
            new_resolution = None;
        }
        if let Some(status_line) = self.find_line(lines.status) {
            edits.extend(replace_value(status_line, &self.done_text));
            if let Some(resolution) = new_resolution {
                let field_end = self.find_field_end(status_line.number, lines.last);
                edits.extend(self.insert_behind(field_end, &[format_resolution(status_line.text, resolution)]));
            }
            return edits;
        }
        let last_field = self.find_line(lines.last_field);
        let bullet_prefix = last_field.map_or("", |field_line| find_bullet_prefix(field_line.text));
        let mut new_lines = vec![format!("{bullet_prefix}status: {}", self.done_text)];
        new_lines.extend(new_resolution.map(|resolution| format!("{bullet_prefix}resolution: {resolution}")));
        let previous_line = match last_field {
            Some(field_line) => self.find_field_end(field_line.number, lines.last),
            None => lines.last,
        };
        // Behind a description, the fields are a paragraph of their own.
        if last_field.is_none() && previous_line != lines.first {
            new_lines.insert(0, String::new());
        }
        edits.extend(self.insert_behind(previous_line, &new_lines));
        edits
    }

    /// Ticks the box of a bullet and sets its status; a bullet with neither gets a mark at the end of its text.
    fn close_bullet(&self, located_item: &LocatedItem) -> Vec<ByteEdit> {
        let lines = &located_item.lines;
        let mut edits = Vec::new();
        if lines.has_box
            && let Some(box_line) = self.find_line(Some(lines.first))
            && let Some(box_start) = box_line.text.find("[ ]")
        {
            let mark_start = box_line.start_offset + box_start + 1;
            edits.push((mark_start..mark_start + 1, "x".to_string()));
        }
        if let Some(status_line) = self.find_line(lines.status) {
            edits.extend(replace_value(status_line, &self.done_text));
        } else if !lines.has_box
            && let Some(text_line) = self.find_line(Some(lines.last_text))
        {
            let text_end = text_line.start_offset + text_line.text.trim_end().len();
            edits.push((text_end..text_end, format!(" — {}", self.done_text)));
        }
        edits
    }

    fn find_line(&self, line_number: Option<usize>) -> Option<&MarkdownLine<'_>> {
        self.markdown.lines.get(line_number?.checked_sub(1)?)
    }

    /// The last line of a field that begins on a line: indented lines and bullets that are no field of their own continue it.
    fn find_field_end(&self, first_line: usize, last_item_line: usize) -> usize {
        let following_lines = self.markdown.lines.iter().skip(first_line);
        let continues_field = |line: &&MarkdownLine<'_>| {
            let line_text = line.text.trim();
            let bullet_text = strip_bullet(line_text);
            line.is_prose()
                && !line_text.is_empty()
                && line.number <= last_item_line
                && (line.text.starts_with([' ', '\t']) || bullet_text.is_some())
                && parse_field(bullet_text.unwrap_or(line_text)).is_none()
        };
        first_line + following_lines.take_while(continues_field).count()
    }

    /// The edit that adds lines behind a line, before its line ending.
    fn insert_behind(&self, line_number: usize, new_lines: &[String]) -> Option<ByteEdit> {
        let mut previous_line = self.find_line(Some(line_number))?;
        // A comment that the line opens would hide the new lines, so they go behind its end.
        if previous_line.text.contains("<!--") {
            let comment_lines = self.markdown.lines.iter().skip(line_number);
            let last_comment_line = comment_lines.take_while(|line| line.kind == MarkdownLineKind::Comment).last();
            previous_line = last_comment_line.unwrap_or(previous_line);
        }
        let line_ending = self.markdown.line_ending();
        let line_end = previous_line.start_offset + previous_line.text.len();
        let inserted_text: String = new_lines.iter().map(|line| format!("{line_ending}{line}")).collect();
        Some((line_end..line_end, inserted_text))
    }
}

/// The edit that replaces the value of a line `name: value`. Emphasis, backticks and a comment around the value stay.
fn replace_value(field_line: &MarkdownLine<'_>, new_value: &str) -> Option<ByteEdit> {
    let line_text = field_line.text;
    let label_end = find_label_end(line_text)?;
    let value_end = line_text[label_end..].find("<!--").map_or(line_text.len(), |offset| label_end + offset);
    let value_text = &line_text[label_end..value_end];
    let is_mark = |character: char| character.is_whitespace() || matches!(character, '*' | '_' | '`');
    let old_value = value_text.trim_matches(is_mark);
    let offset = field_line.start_offset;
    if old_value.is_empty() {
        let space_behind = if value_end < line_text.len() { " " } else { "" };
        return Some((offset + label_end..offset + value_end, format!(" {new_value}{space_behind}")));
    }
    let value_start = label_end + (value_text.len() - value_text.trim_start_matches(is_mark).len());
    // Backticks before a comment may be the inline code that hides it, so they stay.
    let is_before_comment = value_end < line_text.len();
    let first_backtick = old_value.find(['`', '\\']).filter(|_| is_before_comment);
    let replaced_length = old_value[..first_backtick.unwrap_or(old_value.len())].trim_end().len();
    let space_behind = if replaced_length == 0 { " " } else { "" };
    let replaced_start = offset + value_start;
    Some((replaced_start..replaced_start + replaced_length, format!("{new_value}{space_behind}")))
}

/// The end of the label of `name: value` and of `**name:** value`, colon and emphasis included.
fn find_label_end(line_text: &str) -> Option<usize> {
    let (_, after_colon) = line_text.split_once(':')?;
    Some(line_text.len() - after_colon.trim_start_matches(['*', '_']).len())
}

/// The indentation and the bullet of a line.
fn find_bullet_prefix(line_text: &str) -> &str {
    let item_text = line_text.trim_start();
    let item_text = strip_bullet(item_text).unwrap_or(item_text);
    &line_text[..line_text.len() - item_text.len()]
}

/// The line of a resolution, with the bullet and the emphasis of a status line.
fn format_resolution(status_line: &str, resolution: &str) -> String {
    const STATUS_NAME: &str = "status";
    let bullet_prefix = find_bullet_prefix(status_line);
    let plain_line = format!("{bullet_prefix}resolution: {resolution}");
    let name_start = status_line.to_ascii_lowercase().find(STATUS_NAME);
    let (Some(name_start), Some(label_end)) = (name_start, find_label_end(status_line)) else { return plain_line };
    let (Some(opening), Some(closing)) =
        (status_line.get(bullet_prefix.len()..name_start), status_line.get(name_start + STATUS_NAME.len()..label_end))
    else {
        return plain_line;
    };
    // Emphasis that ends behind the value, or anything else around the name, is not repeated.
    let closing_marks: String = closing.chars().filter(|character| matches!(character, '*' | '_')).collect();
    if closing_marks != opening {
        return plain_line;
    }
    let field_name = if status_line[name_start..].starts_with('S') { "Resolution" } else { "resolution" };
    format!("{bullet_prefix}{opening}{field_name}{closing} {resolution}")
}

/// The text on one line, without marks that begin or end a comment: either could hide other items.
fn to_ledger_line(field_text: &str) -> String {
    escape_comments(&to_one_line(field_text)).replace("-->", "--&gt;")
}

fn to_one_line(field_text: &str) -> String {
    field_text.split_whitespace().collect::<Vec<_>>().join(" ")
}
