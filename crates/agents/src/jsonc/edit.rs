//! Edits a text: every change is made twice, as patches of its bytes and on its content, and both results are
//! compared.

use std::ops::Range;

use super::{JsoncFrame, JsoncItem, JsoncKind, JsoncNode, JsoncProblem, JsoncValue, read_document, render::JsoncStyle};

/// One change, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsoncChange {
    /// The path from the root, in the text before any of the changes.
    pub path: Vec<PathStep>,
    pub edit: JsoncEdit,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    Key(String),
    Index(usize),
}

/// What is changed at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsoncEdit {
    /// Adds members to the end of an object.
    AddMembers(Vec<(String, JsoncValue)>),
    /// Appends items to a list.
    AppendItems(Vec<JsoncValue>),
    /// Removes these items of a list or an object, by their positions.
    RemoveItems(Vec<usize>),
    /// Replaces the value.
    Replace(JsoncValue),
}

/// Why a text was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditRefusal {
    /// The text cannot be read.
    Unreadable(JsoncProblem),
    /// There is nothing at this place that could be changed like this.
    Misplaced,
    /// The result does not contain exactly the old values and the change.
    Unverified,
}

/// Applies all of the changes, or none. No two of them may concern the same place.
pub fn edit_document(document_text: &str, changes: &[JsoncChange]) -> Result<String, EditRefusal> {
    let root_node = read_document(document_text).map_err(EditRefusal::Unreadable)?.root;
    // All changes are written in one style, even where single lines of the text deviate from it.
    let patch_writer = PatchWriter {
        document_text,
        style: detect_style(document_text, &root_node),
        is_one_line: is_one_line(document_text, &root_node),
    };
    let mut patches = Vec::new();
    let mut expected_value = root_node.to_value();
    let mut placed_changes = Vec::with_capacity(changes.len());
    for jsonc_change in changes {
        let target_node = jsonc_change.path.iter().try_fold(&root_node, follow_step).ok_or(EditRefusal::Misplaced)?;
        patch_writer.patch_node(target_node, &jsonc_change.edit, &mut patches).ok_or(EditRefusal::Misplaced)?;
        placed_changes.push((target_node.span.start, jsonc_change));
    }
    // Inner values begin later in the text. They are changed first, so that the positions of outer items stay valid.
    placed_changes.sort_by_key(|(node_start, _)| std::cmp::Reverse(*node_start));
    for (_, jsonc_change) in placed_changes {
        let target_value =
            jsonc_change.path.iter().try_fold(&mut expected_value, follow_step_mut).ok_or(EditRefusal::Misplaced)?;
        apply_edit(target_value, &jsonc_change.edit).ok_or(EditRefusal::Misplaced)?;
    }
    // The text is read again: a patch at a wrong offset could otherwise go unnoticed.
    let new_text = apply_patches(document_text, patches).ok_or(EditRefusal::Misplaced)?;
    match read_document(&new_text) {
        Ok(document) if document.root.to_value() == expected_value => Ok(new_text),
        _ => Err(EditRefusal::Unverified),
    }
}

/// Follows one step of a path in the tree.
fn follow_step<'a>(parent_node: &'a JsoncNode, path_step: &PathStep) -> Option<&'a JsoncNode> {
    match path_step {
        PathStep::Key(member_key) => parent_node.get(member_key),
        PathStep::Index(index) => parent_node.items().get(*index).map(|child_item| &child_item.value),
    }
}

/// Follows one step of a path in the content.
fn follow_step_mut<'a>(parent_value: &'a mut JsoncValue, path_step: &PathStep) -> Option<&'a mut JsoncValue> {
    match (parent_value, path_step) {
        (JsoncValue::Map(members), PathStep::Key(member_key)) => {
            members.iter_mut().find(|(known_key, _)| known_key == member_key).map(|(_, member_value)| member_value)
        }
        (JsoncValue::Map(members), PathStep::Index(index)) => {
            members.get_mut(*index).map(|(_, member_value)| member_value)
        }
        (JsoncValue::List(child_items), PathStep::Index(index)) => child_items.get_mut(*index),
        _ => None,
    }
}

/// Applies a change to the content.
fn apply_edit(target_value: &mut JsoncValue, jsonc_edit: &JsoncEdit) -> Option<()> {
    match (target_value, jsonc_edit) {
        (JsoncValue::Map(members), JsoncEdit::AddMembers(new_members)) => members.extend(new_members.iter().cloned()),
        (JsoncValue::List(child_items), JsoncEdit::AppendItems(new_values)) => {
            child_items.extend(new_values.iter().cloned())
        }
        (JsoncValue::Map(members), JsoncEdit::RemoveItems(removed_indexes)) => remove_indexes(members, removed_indexes),
        (JsoncValue::List(child_items), JsoncEdit::RemoveItems(removed_indexes)) => {
            remove_indexes(child_items, removed_indexes)
        }
        (target_value, JsoncEdit::Replace(new_value)) => *target_value = new_value.clone(),
        _ => return None,
    }
    Some(())
}

fn remove_indexes<T>(items: &mut Vec<T>, removed_indexes: &[usize]) {
    let mut index = 0;
    items.retain(|_| {
        index += 1;
        !removed_indexes.contains(&(index - 1))
    });
}

/// Applies patches to the text; `None` if two of them overlap.
fn apply_patches(document_text: &str, mut patches: Vec<(Range<usize>, String)>) -> Option<String> {
    patches.sort_by_key(|(byte_range, _)| byte_range.start);
    let (mut patched_text, mut copied_end) = (String::with_capacity(document_text.len()), 0);
    for (byte_range, new_text) in patches {
        patched_text.push_str(document_text.get(copied_end..byte_range.start)?);
        patched_text.push_str(&new_text);
        copied_end = byte_range.end;
    }
    patched_text.push_str(document_text.get(copied_end..)?);
    Some(patched_text)
}

/// Detects the style of a text: its indentation from the first item, line ends and spaces from the whole text.
fn detect_style(document_text: &str, root_node: &JsoncNode) -> JsoncStyle {
    let first_item = root_node.items().first();
    let first_indent =
        first_item.map(|indented_item| line_indent(document_text, indented_item.start)).unwrap_or_default();
    JsoncStyle {
        indent_unit: if first_indent.is_empty() { "  ".to_string() } else { first_indent.to_string() },
        line_end: if document_text.contains("\r\n") { "\r\n" } else { "\n" },
        // A text on several lines is spaced by convention; on one line, only its own spaces tell.
        has_spaces: !is_one_line(document_text, root_node)
            || document_text.contains(": ")
            || document_text.contains(", "),
    }
}

/// Whether a text with items is written on a single line.
fn is_one_line(document_text: &str, root_node: &JsoncNode) -> bool {
    !root_node.items().is_empty() && !document_text.get(root_node.span.clone()).unwrap_or_default().contains('\n')
}

/// The white space at the beginning of the line of a byte.
fn line_indent(document_text: &str, byte_offset: usize) -> &str {
    let line_start = document_text
        .get(..byte_offset)
        .and_then(|text_before| text_before.rfind('\n'))
        .map_or(0, |newline_offset| newline_offset + 1);
    let line_text = document_text.get(line_start..byte_offset).unwrap_or_default();
    let indent_end = line_text.find(|character| character != ' ' && character != '\t').unwrap_or(line_text.len());
    line_text.get(..indent_end).unwrap_or_default()
}

struct PatchWriter<'a> {
    document_text: &'a str,
    style: JsoncStyle,
    is_one_line: bool,
}

type TextPatches = Vec<(Range<usize>, String)>;

/// A list or an object that is changed.
struct JsoncContainer<'a> {
    node: &'a JsoncNode,
    items: &'a [JsoncItem],
    frame: &'a JsoncFrame,
}

impl PatchWriter<'_> {
    /// Adds the patches of one change; `None` if such a value cannot be changed like this.
    fn patch_node(&self, target_node: &JsoncNode, jsonc_edit: &JsoncEdit, patches: &mut TextPatches) -> Option<()> {
        match (&target_node.kind, jsonc_edit) {
            (JsoncKind::Map(child_items, frame), JsoncEdit::AddMembers(new_members)) => {
                // A key that exists already would become a duplicate.
                if new_members
                    .iter()
                    .any(|(member_key, _)| child_items.iter().any(|child_item| child_item.key == *member_key))
                {
                    return None;
                }
                let new_items: Vec<(Option<&str>, &JsoncValue)> = new_members
                    .iter()
                    .map(|(member_key, member_value)| (Some(member_key.as_str()), member_value))
                    .collect();
                self.patch_addition(
                    &JsoncContainer { node: target_node, items: child_items, frame },
                    &new_items,
                    patches,
                );
            }
            (JsoncKind::List(child_items, frame), JsoncEdit::AppendItems(new_values)) => {
                let new_items: Vec<(Option<&str>, &JsoncValue)> =
                    new_values.iter().map(|new_value| (None, new_value)).collect();
                self.patch_addition(
                    &JsoncContainer { node: target_node, items: child_items, frame },
                    &new_items,
                    patches,
                );
            }
            (
                JsoncKind::Map(child_items, frame) | JsoncKind::List(child_items, frame),
                JsoncEdit::RemoveItems(removed_indexes),
            ) => {
                self.patch_removal(
                    &JsoncContainer { node: target_node, items: child_items, frame },
                    removed_indexes,
                    patches,
                )?;
            }
            // A new value gets the style of the whole text, not that of the value it replaces.
            (_, JsoncEdit::Replace(new_value)) => {
                let base_indent = line_indent(self.document_text, target_node.span.start);
                let rendered_value = if self.is_one_line {
                    self.style.render_inline(new_value)
                } else {
                    self.style.render_lines(new_value, base_indent)
                };
                patches.push((target_node.span.clone(), rendered_value));
            }
            _ => return None,
        }
        Some(())
    }

    fn patch_addition(
        &self,
        container: &JsoncContainer<'_>,
        new_items: &[(Option<&str>, &JsoncValue)],
        patches: &mut TextPatches,
    ) {
        let &JsoncContainer { node: container_node, items: child_items, frame } = container;
        if new_items.is_empty() {
            return;
        }
        let close_offset = container_node.span.end - 1;
        let text_slice = |range: Range<usize>| self.document_text.get(range).unwrap_or_default();
        let base_indent = line_indent(self.document_text, container_node.span.start);
        // The container is empty: there is no item whose layout could be followed.
        let (Some(first_item), Some(last_item)) = (child_items.first(), child_items.last()) else {
            if self.is_one_line && !frame.tail_is_line_comment {
                patches.push((
                    frame.tail_offset..frame.tail_offset,
                    self.render_inline(new_items, if self.style.has_spaces { " " } else { "" }),
                ));
                return;
            }
            let line_end = self.style.line_end;
            let inner_indent = format!("{base_indent}{}", self.style.indent_unit);
            patches.push((frame.tail_offset..frame.tail_offset, self.render_lines(new_items, &inner_indent)));
            // The closing bracket moves to a line of its own, unless it is on one already.
            if !text_slice(frame.tail_offset..close_offset).contains('\n') {
                patches.push((frame.tail_offset..close_offset, format!("{line_end}{base_indent}")));
            }
            return;
        };
        let has_comma = frame.comma_offsets.len() == child_items.len();
        // The comma goes directly behind the last value, before any comment that follows it.
        if !has_comma {
            patches.push((last_item.value.span.end..last_item.value.span.end, ",".to_string()));
        }
        let on_own_lines = text_slice(container_node.span.start..first_item.start).contains('\n');
        // Behind a line comment nothing can be added on the same line.
        let mut inserted_text = if on_own_lines || frame.tail_is_line_comment {
            let inner_indent = match on_own_lines {
                true => line_indent(self.document_text, last_item.start).to_string(),
                false => {
                    format!("{}{}", line_indent(self.document_text, close_offset), self.style.indent_unit)
                }
            };
            self.render_lines(new_items, &inner_indent)
        } else {
            let default_separator = if self.style.has_spaces { " " } else { "" };
            // With only one item there is no separator to follow yet.
            let last_separator = text_slice(last_item.space_start..last_item.start);
            let separator =
                if child_items.len() < 2 || last_separator.contains('\n') { default_separator } else { last_separator };
            format!("{separator}{}", self.render_inline(new_items, separator))
        };
        // A list with a trailing comma keeps having one.
        if has_comma {
            inserted_text.push(',');
        }
        patches.push((frame.tail_offset..frame.tail_offset, inserted_text));
    }

    /// Renders each item on a line of its own, with the line end before it.
    fn render_lines(&self, new_items: &[(Option<&str>, &JsoncValue)], item_indent: &str) -> String {
        let render_line = |(member_key, item_value): &(Option<&str>, &JsoncValue)| {
            let rendered_value = self.style.render_lines(item_value, item_indent);
            let rendered_item = member_key.map_or_else(
                || rendered_value.clone(),
                |member_key| self.style.render_member(member_key, &rendered_value),
            );
            format!("{}{item_indent}{rendered_item}", self.style.line_end)
        };
        new_items.iter().map(render_line).collect::<Vec<_>>().join(",")
    }

    fn render_inline(&self, new_items: &[(Option<&str>, &JsoncValue)], separator: &str) -> String {
        let render_item = |(member_key, item_value): &(Option<&str>, &JsoncValue)| {
            let rendered_value = self.style.render_inline(item_value);
            member_key.map_or_else(
                || rendered_value.clone(),
                |member_key| self.style.render_member(member_key, &rendered_value),
            )
        };
        new_items.iter().map(render_item).collect::<Vec<_>>().join(&format!(",{separator}"))
    }

    fn patch_removal(
        &self,
        container: &JsoncContainer<'_>,
        removed_indexes: &[usize],
        patches: &mut TextPatches,
    ) -> Option<()> {
        let &JsoncContainer { node: container_node, items: child_items, frame } = container;
        if removed_indexes.iter().any(|item_index| *item_index >= child_items.len()) {
            return None;
        }
        let removed_flags: Vec<bool> =
            (0..child_items.len()).map(|item_index| removed_indexes.contains(&item_index)).collect();
        let last_kept = removed_flags.iter().rposition(|is_removed| !is_removed);
        // Nothing is left, not even a comment: only the brackets stay.
        if last_kept.is_none() && !frame.has_comments {
            patches.push((container_node.span.start + 1..container_node.span.end - 1, String::new()));
            return Some(());
        }
        let mut item_index = 0;
        // Adjacent items are removed together, so that the white space between them goes, too.
        while item_index < child_items.len() {
            item_index = match removed_flags.get(item_index) {
                Some(true) => self.patch_removed_piece(container, &removed_flags, item_index, patches)?,
                _ => item_index + 1,
            };
        }
        // The comma behind the item that is now the last one belonged to what was removed.
        let had_comma = frame.comma_offsets.len() == child_items.len();
        if let Some(kept_index) = last_kept.filter(|kept_index| *kept_index + 1 < child_items.len() && !had_comma) {
            let comma_offset = *frame.comma_offsets.get(kept_index)?;
            patches.push((comma_offset..comma_offset + 1, String::new()));
        }
        Some(())
    }

    /// Removes the item at `first_index` with the removed items that follow it in one piece, and returns the index of
    /// the item behind the piece.
    fn patch_removed_piece(
        &self,
        container: &JsoncContainer<'_>,
        removed_flags: &[bool],
        first_index: usize,
        patches: &mut TextPatches,
    ) -> Option<usize> {
        let &JsoncContainer { items: child_items, frame, .. } = container;
        let first_removed = child_items.get(first_index)?;
        let mut last_removed = first_removed;
        let mut next_index = first_index + 1;
        // Items that follow without a comment between them are removed in one piece.
        while let Some(next_item) = child_items.get(next_index).filter(|_| removed_flags.get(next_index) == Some(&true))
        {
            let text_between = self.document_text.get(last_removed.value.span.end..next_item.start).unwrap_or_default();
            if !text_between.trim_start_matches(',').trim().is_empty() {
                break;
            }
            last_removed = next_item;
            next_index += 1;
        }
        let removed_range = first_removed.start..last_removed.value.span.end;
        let piece_end = frame.comma_offsets.get(next_index - 1).map_or(removed_range.end, |comma_at| comma_at + 1);
        let (removal_start, spaces_behind) =
            self.find_removed_space(first_removed, &removed_range, piece_end, removed_flags.get(next_index).copied());
        patches.push((removal_start..removed_range.end, String::new()));
        // The comma may be separated from the value by a comment, so it is a patch of its own.
        if piece_end > removed_range.end {
            patches.push((piece_end - 1..piece_end, String::new()));
        }
        if spaces_behind > 0 {
            patches.push((piece_end..piece_end + spaces_behind, String::new()));
        }
        Some(next_index)
    }

    /// Where the white space begins that is removed with a piece, and how much is removed behind it. `first_item` is
    /// the first item of the piece; `next_is_removed` says whether the item behind it is removed as well.
    fn find_removed_space(
        &self,
        first_item: &JsoncItem,
        removed_range: &Range<usize>,
        piece_end: usize,
        next_is_removed: Option<bool>,
    ) -> (usize, usize) {
        let text_slice = |range: Range<usize>| self.document_text.get(range).unwrap_or_default();
        let space_before = text_slice(first_item.space_start..first_item.start);
        let text_after = self.document_text.get(piece_end..).unwrap_or_default();
        let after_blanks = text_after.trim_start_matches([' ', '\t']);
        let blank_count = text_after.len() - after_blanks.len();
        let ends_line = after_blanks.starts_with(['\r', '\n']);
        // Empty lines before it stay: only the last line end is removed.
        let removal_start = match space_before.rfind('\n') {
            Some(newline_offset)
                if text_slice(first_item.space_start..first_item.space_start + newline_offset).ends_with('\r') =>
            {
                first_item.space_start + newline_offset - 1
            }
            Some(newline_offset) => first_item.space_start + newline_offset,
            None => first_item.space_start,
        };
        // The only line end behind a comment may go if another one takes its place.
        let is_replaced = ends_line && next_is_removed != Some(true) && piece_end - removed_range.end <= 1;
        let needs_line_end = first_item.follows_line_comment && removal_start == first_item.space_start && !is_replaced;
        let is_first_on_line = removal_start == first_item.start && next_is_removed == Some(false) && !ends_line;
        // Where the white space before the piece stays, or there is none, the blanks behind it go instead if an item
        // that stays follows on the same line.
        match (needs_line_end, next_is_removed) {
            (true, Some(false)) if !ends_line => (first_item.start, blank_count),
            (true, _) => (first_item.start, 0),
            (false, _) if is_first_on_line => (first_item.start, blank_count),
            (false, _) => (removal_start, 0),
        }
    }
}
