//! References of documents: the documents that they were made from, and links to files and headings of the project.
//!
//! Web addresses are not checked, and the value of a placeholder is not guessed. A heading is found by its words, since every
//! renderer builds anchors its own way.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use super::material::{CheckMaterial, is_inside_project, join_path, normalize_path, parent_directory};
use crate::{
    config,
    markdown::{MarkdownLineKind as LineKind, MarkdownPage},
    problem::FileProblem,
    yaml::{self, YamlNode},
};

pub(super) fn check_links(check_material: &CheckMaterial<'_>, problems: &mut Vec<FileProblem>) {
    let document_texts = check_material.texts.iter().map(|document| (document.path.as_str(), document.text.as_str()));
    let story_texts =
        check_material.stories.iter().map(|story_file| (story_file.path.as_str(), story_file.text.as_str()));
    // Many links lead to the same file, whose headings are read once.
    let anchor_cache = AnchorCache { material: check_material, anchors_by_file: RefCell::default() };
    for (document_path, document_text) in document_texts.chain(story_texts) {
        let markdown = MarkdownPage::parse(document_text);
        check_inputs(check_material, document_path, &markdown, problems);
        for found_link in find_links(&markdown) {
            check_link(&anchor_cache, document_path, found_link, problems);
        }
    }
}

/// Checks `inputDocuments` of the front matter.
fn check_inputs(
    check_material: &CheckMaterial<'_>,
    document_path: &str,
    markdown: &MarkdownPage<'_>,
    problems: &mut Vec<FileProblem>,
) {
    let Some(Ok(front_matter)) = markdown.front_matter().map(yaml::parse_yaml) else { return };
    let input_nodes = front_matter.get("inputDocuments").map(YamlNode::items).unwrap_or_default();
    for input_node in input_nodes.iter().take(MAX_INPUTS) {
        // An input is a path, or a mapping with the path under one of these keys.
        let input_text = input_node
            .scalar_text()
            .or_else(|| input_node.get("path").or_else(|| input_node.get("file")).and_then(YamlNode::scalar_text));
        let Some(input_path) = input_text.map(str::trim) else { continue };
        if is_document_path(input_path) && !is_input_found(check_material, document_path, input_path) {
            let message = format!("input document not found: `{input_path}`");
            problems.push(
                FileProblem::warning("input-missing", document_path, message)
                    .at_line(input_node.line + 1)
                    .with_reason("Agents that continue this document cannot read its sources.")
                    .with_advice("correct the path or remove the line"),
            );
        }
    }
}

/// Further inputs of a document are not checked.
const MAX_INPUTS: usize = 500;

/// Whether a text is a path to a document, and not a sentence, pattern or address.
fn is_document_path(input_path: &str) -> bool {
    let has_extension =
        [".md", ".yaml", ".yml", ".txt"].iter().any(|extension| input_path.to_ascii_lowercase().ends_with(extension));
    has_extension
        && !input_path.contains(['*', '?', '<', '>', '|', '(', ','])
        && !input_path.contains("://")
        && !input_path.contains("{{")
}

/// Whether an input exists: from the root, from beside the document, in one of BMAD's folders, or anywhere under its own
/// name.
fn is_input_found(check_material: &CheckMaterial<'_>, document_path: &str, input_path: &str) -> bool {
    let project_folders = &check_material.config.folders;
    let folder_variables = [
        ("{planning_artifacts}", project_folders.planning.as_str()),
        ("{implementation_artifacts}", project_folders.implementation.as_str()),
        ("{output_folder}", project_folders.output.as_str()),
        ("{project_knowledge}", project_folders.knowledge.as_str()),
    ];
    let expanded = folder_variables.iter().find_map(|(variable_name, directory)| {
        input_path.strip_prefix(variable_name).map(|remainder| join_path(directory, remainder.trim_start_matches('/')))
    });
    let input_path = expanded.as_deref().unwrap_or_else(|| config::normalize_folder(input_path));
    if input_path.contains('{') || !is_inside_project(input_path) {
        // A path of another machine or a variable cannot be checked.
        return true;
    }
    let file_name = input_path.rsplit('/').next().unwrap_or(input_path);
    let mut base_directories = vec![
        "",
        parent_directory(document_path),
        &project_folders.planning,
        &project_folders.output,
        &project_folders.implementation,
    ];
    base_directories.push(&project_folders.knowledge);
    base_directories.iter().any(|base_directory| check_material.path_exists(&join_path(base_directory, input_path)))
        || check_material
            // Documents are moved between folders; the same name elsewhere is most likely the input.
            .documents
            .found
            .iter()
            .any(|document| document.paths().any(|part_path| part_path.rsplit('/').next() == Some(file_name)))
}

/// A link `[words](target)` in prose.
#[derive(Clone, Copy)]
struct DocumentLink<'t> {
    line: usize,
    target: &'t str,
}

/// Finds the links of a page, outside of inline code.
fn find_links<'t>(markdown: &MarkdownPage<'t>) -> Vec<DocumentLink<'t>> {
    let mut found_links = Vec::new();
    for line in markdown.lines.iter().filter(|line| line.kind == LineKind::Prose && line.text.contains("](")) {
        let mut in_code = false;
        let mut remaining_text = line.text;
        while let Some(mark_offset) = remaining_text.find(['`', ']']) {
            let after_mark = &remaining_text[mark_offset + 1..];
            // Every backtick toggles inline code, where brackets are no links.
            in_code ^= remaining_text[mark_offset..].starts_with('`');
            let target_text =
                after_mark.strip_prefix('(').filter(|_| !in_code && remaining_text[mark_offset..].starts_with(']'));
            remaining_text = match target_text.and_then(split_target) {
                Some((link_target, after_link)) => {
                    found_links.push(DocumentLink { line: line.number, target: link_target });
                    after_link
                }
                None => after_mark,
            };
        }
    }
    found_links
}

/// Splits the target from the text behind its parenthesis; no path is longer than the limit.
fn split_target(target_text: &str) -> Option<(&str, &str)> {
    let target_end = target_text.bytes().take(2_000).position(|byte| byte == b')')?;
    Some((&target_text[..target_end], &target_text[target_end + 1..]))
}

fn check_link(
    anchor_cache: &AnchorCache<'_, '_>,
    document_path: &str,
    document_link: DocumentLink<'_>,
    problems: &mut Vec<FileProblem>,
) {
    let DocumentLink { line: line_number, target: link_target } = document_link;
    let link_target = link_target.trim();
    let link_target = match link_target.strip_prefix('<') {
        Some(in_angle_brackets) => in_angle_brackets.split('>').next().unwrap_or(in_angle_brackets),
        None => link_target.split([' ', '\t']).next().unwrap_or(link_target),
    };
    let (target_file, anchor) = link_target.split_once('#').unwrap_or((link_target, ""));
    // A colon marks an address of the web, a mail address or a drive; none of them is a file of the project.
    let is_foreign = link_target.contains(':') || target_file.starts_with(['/', '~', '$']);
    if link_target.is_empty() || is_foreign || link_target.contains(['{', '*', '<', '…']) || link_target.contains("...")
    {
        return;
    }
    let target_file = percent_decode(target_file.split('?').next().unwrap_or(target_file));
    // `[x](y)` in a sentence may be anything; a path has an extension or a directory.
    if !target_file.is_empty() && !target_file.contains(['.', '/']) {
        return;
    }
    let target_path = if target_file.is_empty() {
        Some(document_path.to_string())
    } else {
        normalize_path(&join_path(parent_directory(document_path), &target_file))
    };
    // Files outside of the project are not checked.
    let Some(target_path) = target_path else { return };
    let check_material = anchor_cache.material;
    if !target_file.is_empty() && !check_material.path_exists(&target_path) {
        // The path may also be meant from the project's root.
        if normalize_path(&target_file).is_some_and(|path_from_root| check_material.path_exists(&path_from_root)) {
            return;
        }
        let problem = FileProblem::warning("link-missing", document_path, format!("broken link to `{target_file}`"));
        problems.push(problem.at_line(line_number).with_advice("correct the path or remove the link"));
        return;
    }
    if !anchor.is_empty() && target_path.ends_with(".md") && !anchor_cache.has_anchor(&target_path, anchor) {
        let message = format!("{target_path} has no heading `#{}`", percent_decode(anchor));
        problems.push(
            FileProblem::note("link-anchor-missing", document_path, message)
                .at_line(line_number)
                .with_advice("correct the link"),
        );
    }
}

/// Decodes `%20` to a space.
fn percent_decode(encoded_text: &str) -> String {
    let bytes = encoded_text.as_bytes();
    let mut decoded_bytes = Vec::with_capacity(bytes.len());
    let mut byte_index = 0;
    while let Some(byte) = bytes.get(byte_index) {
        let hex_code = encoded_text.get(byte_index + 1..byte_index + 3).filter(|_| *byte == b'%');
        match hex_code.and_then(|hex_code| u8::from_str_radix(hex_code, 16).ok()) {
            Some(decoded_byte) => {
                decoded_bytes.push(decoded_byte);
                byte_index += 3;
            }
            None => {
                decoded_bytes.push(*byte);
                byte_index += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded_bytes).into_owned()
}

/// The headings of the files that links lead to.
struct AnchorCache<'m, 'a> {
    material: &'m CheckMaterial<'a>,
    /// The anchors by file; `None` if the file cannot be read and may have any.
    anchors_by_file: RefCell<BTreeMap<String, Option<BTreeSet<String>>>>,
}

impl AnchorCache<'_, '_> {
    fn has_anchor(&self, target_path: &str, anchor: &str) -> bool {
        let wanted_anchor = fold_letters(&percent_decode(anchor));
        // The second heading with the same words has a number behind it.
        let without_number = wanted_anchor.trim_end_matches(|character: char| character.is_ascii_digit());
        let mut anchors_by_file = self.anchors_by_file.borrow_mut();
        let known_anchors = anchors_by_file.entry(target_path.to_string()).or_insert_with(|| {
            let file_text = self.material.project_files.read_file(target_path).ok().flatten()?;
            let markdown = MarkdownPage::parse(&file_text);
            let mut anchor_names: BTreeSet<String> =
                markdown.lines.iter().filter_map(|line| line.heading()).map(|(_, title)| fold_letters(title)).collect();
            // Anchors can also be written as HTML or as an attribute of the heading.
            for line in markdown.lines.iter().filter(|line| line.kind == LineKind::Prose) {
                for anchor_mark in ["id=\"", "name=\"", "{#"] {
                    let named_anchors = line.text.split(anchor_mark).skip(1).take(20);
                    anchor_names.extend(named_anchors.map(|after_anchor_mark| {
                        fold_letters(after_anchor_mark.split(['"', '}']).next().unwrap_or_default())
                    }));
                }
            }
            Some(anchor_names)
        });
        let Some(known_anchors) = known_anchors else { return true };
        wanted_anchor.is_empty() || known_anchors.contains(&wanted_anchor) || known_anchors.contains(without_number)
    }
}

/// Only the letters and digits of a text, in lower case.
fn fold_letters(title_text: &str) -> String {
    title_text.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
