//! References in a story's front matter: the stories that it depends on, and the deferred work that it closes.

use std::collections::BTreeSet;

use super::material::CheckMaterial;
use crate::{
    board::Board,
    deferred_work,
    keys::StoryKey,
    markdown::{MarkdownLineKind, MarkdownPage},
    problem::FileProblem,
    project_files,
};

pub(super) fn check_references(check_material: &CheckMaterial<'_>, problems: &mut Vec<FileProblem>) {
    let known_stories = KnownStories::from_material(check_material);
    let known_deferred = KnownDeferred::from_material(check_material);
    for story_file in &check_material.stories {
        for dependency in story_file
            .story
            .links
            .depends_on
            .iter()
            .take(MAX_REFERENCES)
            .filter(|dependency| !known_stories.contains(dependency))
        {
            let problem = FileProblem::warning(
                "depends-on-unknown",
                &story_file.path,
                format!("depends on unknown story `{dependency}`"),
            );
            let reason = "Dependencies decide when a story is built.";
            problems.push(
                problem
                    .at_line(find_front_matter_line(&story_file.text, dependency))
                    .with_reason(reason)
                    .with_advice("use the key or number of an existing story"),
            );
        }
        for deferred_id in story_file.story.links.closes_deferred.iter().take(MAX_REFERENCES) {
            if known_deferred.contains(deferred_id) {
                continue;
            }
            let message = format!("closes deferred work `{deferred_id}`, which is not listed anywhere");
            let problem = FileProblem::warning("closes-deferred-unknown", &story_file.path, message);
            let problem = problem.at_line(find_front_matter_line(&story_file.text, deferred_id));
            problems.push(problem.with_advice("check deferred-work.md for the open items"));
        }
    }
}

/// How many references of a story are checked; further ones are ignored.
pub(super) const MAX_REFERENCES: usize = 200;

/// All stories that any file mentions.
#[derive(Default)]
struct KnownStories {
    names_and_slugs: BTreeSet<String>,
    lookup_names: BTreeSet<String>,
}

impl KnownStories {
    fn from_material(check_material: &CheckMaterial<'_>) -> KnownStories {
        let mut known_stories = KnownStories::default();
        let file_keys = check_material.stories.iter().filter_map(|story_file| story_file.story.key.as_ref());
        let planned_keys = check_material.epics.stories().map(|story| &story.key);
        let board_keys = check_material.board.into_iter().flat_map(Board::stories).map(|(story_key, _)| story_key);
        // A story may exist in only one of the three places.
        for story_key in file_keys.chain(planned_keys).chain(board_keys) {
            known_stories.lookup_names.insert(story_key.lookup_name());
            known_stories.names_and_slugs.extend([story_key.to_string(), story_key.slug_text().to_string()]);
        }
        known_stories
    }

    /// Whether a key, number, slug or file names a known story. An epic as a dependency is not checked.
    fn contains(&self, reference: &str) -> bool {
        let bare_name = reference.rsplit('/').next().unwrap_or(reference).trim_end_matches(".md");
        let bare_name = ["spec-", "story-"]
            .iter()
            .find_map(|known_prefix| bare_name.strip_prefix(known_prefix))
            .unwrap_or(bare_name);
        let story_key = StoryKey::parse(bare_name);
        bare_name.starts_with("epic-")
            || self.names_and_slugs.contains(bare_name)
            || story_key.is_some_and(|story_key| self.lookup_names.contains(&story_key.lookup_name()))
    }
}

/// All deferred work that is listed.
#[derive(Default)]
struct KnownDeferred {
    /// The numbers of the ids of all items.
    item_numbers: BTreeSet<String>,
    /// The texts of all ledgers, in lower case.
    lower_text: String,
}

impl KnownDeferred {
    fn from_material(check_material: &CheckMaterial<'_>) -> KnownDeferred {
        let mut known_deferred = KnownDeferred::default();
        for document in check_material.documents.of_kind(crate::documents::DocumentKind::Deferred) {
            let ledger_text =
                project_files::read_or_report(check_material.project_files, &document.path, &mut Vec::new());
            let ledger_text = ledger_text.unwrap_or_default();
            known_deferred.item_numbers.extend(deferred_work::list_item_numbers(&ledger_text));
            known_deferred.lower_text.push_str(&ledger_text.to_lowercase());
            known_deferred.lower_text.push('\n');
        }
        known_deferred
    }

    /// Whether an item has this id, compared as when a story closes it. Of an id in another form any mention counts.
    fn contains(&self, deferred_id: &str) -> bool {
        match deferred_work::normalize_id(deferred_id) {
            Some(item_number) => self.item_numbers.contains(&item_number),
            None => self.lower_text.contains(&deferred_id.to_lowercase()),
        }
    }
}

/// The line of the front matter that contains a text.
pub(super) fn find_front_matter_line(story_text: &str, wanted_text: &str) -> usize {
    let markdown = MarkdownPage::parse(story_text);
    let mut front_lines = markdown.lines.iter().filter(|line| line.kind == MarkdownLineKind::FrontMatter);
    front_lines.find(|line| line.text.contains(wanted_text)).map_or(1, |line| line.number)
}
