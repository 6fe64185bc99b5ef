//! Requirements by their ids, `FR1` or `FR-1`, and which epic covers which, by the file's own map.
//!
//! The same readers serve a PRD, whose requirements are headings in late eras.

use tribunal_json::Serialize;

use crate::{
    epic_id::EpicId,
    markdown::{MarkdownLine, MarkdownPage, normalize_title},
};

/// One requirement and where it is defined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Requirement {
    /// The id: `FR1`, `NFR2`, `UX-DR3`; `FR-1` is read as `FR1`.
    pub id: String,
    pub text: String,
    pub path: String,
    pub line: usize,
}

/// One line of the coverage map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequirementCoverage {
    pub requirement: String,
    pub epics: Vec<EpicId>,
    pub path: String,
    pub line: usize,
}

/// Reads the requirements inventory and the coverage map of one file of epics.
pub(super) fn gather_requirements(
    document_path: &str,
    markdown: &MarkdownPage<'_>,
    requirements: &mut Vec<Requirement>,
    map: &mut Vec<RequirementCoverage>,
) {
    for section in markdown.sections() {
        let section_lines = &markdown.lines[section.line_range.clone()];
        let title = normalize_title(section.title);
        if title.contains("coverage map") {
            map.extend(
                section_lines
                    .iter()
                    .filter(|line| line.is_prose())
                    .flat_map(|line| parse_coverage_line(document_path, line)),
            );
        } else if title == "requirements inventory" {
            // The coverage map is often a subsection of the inventory, and its lines would look like definitions.
            let coverage_map = markdown.sections().into_iter().find(|inner_section| {
                normalize_title(inner_section.title).contains("coverage map")
                    && section.line_range.contains(&inner_section.heading_index)
            });
            let inventory_end = coverage_map.map_or(section.line_range.end, |coverage_map| coverage_map.heading_index);
            requirements.extend(find_defined(document_path, &markdown.lines[section.line_range.start..inventory_end]));
        }
    }
}

/// The requirements that a document defines: `FR1: …`, `- **FR1:** …`, `#### FR-1: …`, `| FR1 | … |`.
pub fn read_inventory(document_path: &str, document_text: &str) -> Vec<Requirement> {
    find_defined(document_path, &MarkdownPage::parse(document_text).lines)
}

fn find_defined(document_path: &str, lines: &[MarkdownLine<'_>]) -> Vec<Requirement> {
    let mut seen_ids = std::collections::BTreeSet::new();
    let mut requirements = Vec::new();
    for line in lines.iter().filter(|line| line.is_prose()) {
        let unmarked_text = line.text.trim_start_matches(['#', '-', '*', '+', '|', '>', '_', '[', '`', ' ', '\t']);
        let Some((requirement_id, after_id)) = parse_id(unmarked_text) else { continue };
        // A sentence that begins with an id defines nothing.
        let after_marks = after_id.trim_start_matches(['*', '_', ']', '`', ' ']);
        let marked_text = after_marks.strip_prefix([':', '|', '.', '-', '–', '—', '(']);
        // An id in bold at the start of a list item is a definition: `- **FR7** x`.
        let is_item = ["- **", "* **", "+ **"].iter().any(|item_start| line.text.trim_start().starts_with(item_start));
        let emphasized_text = (is_item && after_id.starts_with("**")).then_some(after_marks);
        let Some(requirement_text) = marked_text
            .or(emphasized_text)
            .filter(|requirement_text| !requirement_text.trim().is_empty() || marked_text.is_some())
        else {
            continue;
        };
        // The first definition counts; later ones are references.
        if seen_ids.insert(requirement_id.clone()) {
            let requirement_text = requirement_text.trim_matches(['*', '_', '|', ':', ' ']).to_string();
            requirements.push(Requirement {
                id: requirement_id,
                text: requirement_text,
                path: document_path.to_string(),
                line: line.number,
            });
        }
    }
    requirements
}

/// Parses a line of the map: `FR1: Epic 1 - …`, `| FR1 | Epic 1 |`, `- FR1, FR2 → Epics 2 and 3`.
fn parse_coverage_line(document_path: &str, markdown_line: &MarkdownLine<'_>) -> Vec<RequirementCoverage> {
    let lower_case = markdown_line.text.to_ascii_lowercase();
    // The ids stand before the word `epic`, the numbers of the epics behind it.
    let (before_epic, from_epic) =
        markdown_line.text.split_at(lower_case.find("epic").unwrap_or(markdown_line.text.len()));
    let mut epic_numbers = Vec::new();
    let mut remaining_text = from_epic;
    // The numbers of `Epic 1` and `Epics 2, 3 and 4` count; a number in a description does not.
    while let Some(word_offset) = remaining_text.to_ascii_lowercase().find("epic").filter(|_| epic_numbers.len() < 100)
    {
        remaining_text = remaining_text[word_offset + 4..].trim_start_matches(['s', 'S', ' ', ':']);
        loop {
            let after_digits = remaining_text.trim_start_matches(|character: char| character.is_ascii_digit());
            let Ok(epic_number) = remaining_text[..remaining_text.len() - after_digits.len()].parse::<u32>() else {
                break;
            };
            epic_numbers.push(EpicId::from(epic_number));
            let after_separator = after_digits.trim_start_matches([',', '&', '+', ' ']);
            let after_separator = after_separator.strip_prefix("and ").unwrap_or(after_separator);
            if after_separator.len() == after_digits.len()
                || !after_separator.starts_with(|character: char| character.is_ascii_digit())
            {
                remaining_text = after_digits;
                break;
            }
            remaining_text = after_separator;
        }
        // Every pass looks through the rest of the line, and a very long line is no part of a map.
        if remaining_text.len() > 2_000 {
            break;
        }
    }
    epic_numbers.dedup();
    // In a table the epic may come first: `| Epic 1 | FR1-FR6 |`.
    let requirement_ids = Some(find_requirement_ids(before_epic))
        .filter(|requirement_ids| !requirement_ids.is_empty())
        .unwrap_or_else(|| find_requirement_ids(from_epic));
    let coverages = requirement_ids.into_iter().map(|requirement| RequirementCoverage {
        requirement,
        epics: epic_numbers.clone(),
        path: document_path.to_string(),
        line: markdown_line.number,
    });
    coverages.collect()
}

/// Every id in a text, in order, each once; `FR1-FR3`, `FR1 to FR3` and `FR1-3` are three ids.
pub fn find_requirement_ids(text: &str) -> Vec<String> {
    let mut found_ids: Vec<String> = Vec::new();
    let mut seen_ids = std::collections::BTreeSet::new();
    let mut previous: Option<PreviousRequirementId> = None;
    let mut scan_offset = 0;
    let mut inside_word = false;
    while let Some(next_character) = text[scan_offset..].chars().next() {
        // An id must not continue a word, as in `xFR1`.
        let parsed_id = (!inside_word).then(|| parse_id_parts(&text[scan_offset..])).flatten();
        let Some((id_kind, id_number, after_id)) = parsed_id else {
            inside_word = next_character.is_alphanumeric();
            scan_offset += next_character.len_utf8();
            continue;
        };
        // A range mark between two ids of one kind includes the ids between them. Ranges are limited, since
        // `FR1-FR4000000000` would fill the memory.
        let range_opener = previous.take().filter(|previous_id| {
            let between = text[previous_id.end_offset..scan_offset].trim();
            previous_id.kind == id_kind
                && is_range_mark(between)
                && previous_id.id_number < id_number
                && id_number - previous_id.id_number < 100
        });
        let range_start = range_opener.map_or(id_number, |previous_id| previous_id.id_number + 1);
        let (last_number, after_id) = parse_range_end(after_id)
            .filter(|(last_number, _)| *last_number > id_number && last_number - id_number < 100)
            .unwrap_or((id_number, after_id));
        let new_numbers = (range_start..=last_number).filter(|new_number| seen_ids.insert((id_kind, *new_number)));
        found_ids.extend(new_numbers.map(|new_number| format!("{id_kind}{new_number}")));
        scan_offset = text.len() - after_id.len();
        previous = Some(PreviousRequirementId { kind: id_kind, id_number: last_number, end_offset: scan_offset });
        // Behind an id the scan is still inside a word until another character comes.
        inside_word = true;
    }
    found_ids
}

/// The id that was found last.
struct PreviousRequirementId {
    kind: &'static str,
    id_number: u32,
    /// The offset of the byte behind it.
    end_offset: usize,
}

fn is_range_mark(between: &str) -> bool {
    matches!(between, "-" | "–" | "—" | "…" | ".." | "..." | "to" | "through")
}

fn parse_range_end(after_id: &str) -> Option<(u32, &str)> {
    let after_dash = after_id.strip_prefix(['-', '–'])?;
    let after_digits = after_dash.trim_start_matches(|character: char| character.is_ascii_digit());
    let end_number = after_dash[..after_dash.len() - after_digits.len()].parse().ok()?;
    Some((end_number, after_digits))
}

fn parse_id(item_text: &str) -> Option<(String, &str)> {
    let (id_kind, id_number, after_id) = parse_id_parts(item_text)?;
    Some((format!("{id_kind}{id_number}"), after_id))
}

/// Parses `FR12`, `FR-12`, `NFR3` or `UX-DR4`, and returns the text behind it.
fn parse_id_parts(item_text: &str) -> Option<(&'static str, u32, &str)> {
    // `NFR` comes before `FR`, since the first prefix that fits is taken.
    const KINDS: [&str; 4] = ["NFR", "UX-DR", "FR", "CAP"];
    let id_kind = KINDS.into_iter().find(|id_kind| item_text.starts_with(id_kind))?;
    let after_kind = &item_text[id_kind.len()..];
    let after_kind = after_kind.strip_prefix('-').unwrap_or(after_kind);
    let after_digits = after_kind.trim_start_matches(|character: char| character.is_ascii_digit());
    let id_number = after_kind[..after_kind.len() - after_digits.len()].parse().ok()?;
    (!after_digits.starts_with(|character: char| character.is_alphabetic())).then_some((
        id_kind,
        id_number,
        after_digits,
    ))
}
