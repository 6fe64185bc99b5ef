//! References in a story's front matter: the stories that it depends on, and the deferred work that it closes.

use std::collections::BTreeSet;

use super::material::Material;
use crate::{
    board::Board,
    keys::{Number, StoryKey},
    page::{Kind, Page},
    problem::Problem,
    shelf,
};

pub(super) fn check(material: &Material<'_>, problems: &mut Vec<Problem>) {
    let known = Known::of(material);
    let deferred = deferred(material);
    for file in &material.stories {
        for other in file.story.depends_on.iter().take(MOST).filter(|other| !known.has(other)) {
            let problem = Problem::warning(
                "depends-on-unknown",
                &file.path,
                format!("it depends on `{other}`, and there is no such story"),
            );
            let why = "what a story waits for decides when it is built";
            problems.push(
                problem.at(line_of(&file.text, other)).why(why).todo("write the story's key or number"),
            );
        }
        for item in file.story.closes_deferred.iter().take(MOST) {
            if deferred.contains(&item.to_lowercase()) {
                continue;
            }
            // The ledger has many forms, so any mention of the id counts.
            let what = format!("it closes the deferred work `{item}`, which is not listed anywhere");
            let problem = Problem::warning("closes-deferred-unknown", &file.path, what);
            let problem = problem.at(line_of(&file.text, item));
            problems.push(problem.todo("see deferred-work.md for what is open"));
        }
    }
}

/// How many references of a story are checked; no story has more.
pub(super) const MOST: usize = 200;

/// All stories that any file mentions.
#[derive(Default)]
struct Known {
    names: BTreeSet<String>,
    numbers: BTreeSet<Number>,
}

impl Known {
    fn of(material: &Material<'_>) -> Known {
        let mut known = Known::default();
        let files = material.stories.iter().filter_map(|file| file.story.key.as_ref());
        let planned = material.epics.stories().map(|story| &story.key);
        let on_board = material.board.into_iter().flat_map(Board::stories).map(|(key, _)| key);
        // A story may exist in only one of the three places.
        for key in files.chain(planned).chain(on_board) {
            known.numbers.insert(key.number());
            known.names.extend([key.to_string(), key.slug.clone()]);
        }
        known
    }

    /// Whether a key, number, slug or file names a known story. An epic as a dependency is not checked.
    fn has(&self, said: &str) -> bool {
        let name = said.rsplit('/').next().unwrap_or(said).trim_end_matches(".md");
        let name = ["spec-", "story-"].iter().find_map(|start| name.strip_prefix(start)).unwrap_or(name);
        let number = Number::parse(name).or_else(|| StoryKey::parse(name).map(|key| key.number()));
        name.starts_with("epic-")
            || self.names.contains(name)
            || number.is_some_and(|number| self.numbers.contains(&number))
    }
}

/// The text of all deferred work, in lower case.
fn deferred(material: &Material<'_>) -> String {
    let mut all = String::new();
    for document in material.documents.of(crate::documents::Kind::Deferred) {
        let text = shelf::read(material.shelf, &document.path, &mut Vec::new());
        all.push_str(&text.unwrap_or_default().to_lowercase());
        all.push('\n');
    }
    all
}

/// The line of the front matter that contains a text.
pub(super) fn line_of(text: &str, named: &str) -> usize {
    let page = Page::of(text);
    let mut front = page.lines.iter().filter(|line| line.kind == Kind::Front);
    front.find(|line| line.text.contains(named)).map_or(1, |line| line.number)
}
