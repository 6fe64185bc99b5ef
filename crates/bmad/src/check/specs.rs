//! Folders with a `SPEC.md`: the stories in `stories.yaml` compared with the files beside it. A story without a file has not
//! been started.

use std::collections::BTreeMap;

use super::material::Material;
use crate::{documents::Kind, problem::Problem, shelf, specs, story};

pub(super) fn check(material: &Material<'_>, problems: &mut Vec<Problem>) {
    for document in material.documents.of(Kind::Spec) {
        let Some(list) = document.sharded.iter().find(|path| path.ends_with("/stories.yaml")) else {
            continue;
        };
        let Some(text) = shelf::read(material.shelf, list, problems) else { continue };
        let all = specs::read(list, &text);
        problems.extend(all.problems);
        let ids: Vec<(&str, usize)> =
            all.stories.iter().map(|story| (story.id.as_str(), story.line)).collect();
        let files = document.sharded.iter().filter(|path| path.ends_with(".md")).map(String::as_str);
        compare(material, list, &ids, files.collect(), problems);
    }
}

/// Compares the listed ids with the story files, and checks each file.
fn compare(
    material: &Material<'_>,
    list: &str,
    ids: &[(&str, usize)],
    files: Vec<&str>,
    problems: &mut Vec<Problem>,
) {
    let lines: BTreeMap<&str, usize> = ids.iter().copied().collect();
    let mut of_id: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for path in files {
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name.strip_suffix(".md").unwrap_or(name);
        // The id is followed by a dash; the longest id that fits is meant.
        let cuts = stem.match_indices('-').map(|(at, _)| &stem[..at]).chain([stem]);
        match cuts.filter(|start| lines.contains_key(start)).max_by_key(|start| start.len()) {
            Some(id) => of_id.entry(id).or_default().push(path),
            // Without a readable list every file would be reported.
            None if lines.is_empty() => {}
            None => problems.push(
                Problem::warning("stories-file-unlisted", path, format!("no story of {list} has this file"))
                    .todo("list it, or take the file away"),
            ),
        }
        if let Some(text) = shelf::read(material.shelf, path, problems) {
            problems.extend(specs::spec(path, &text).problems);
            depends(path, &text, &lines, problems);
        }
    }
    for (id, files) in of_id.iter().filter(|(_, files)| files.len() > 1) {
        let what = format!("the story {id:?} has several files: {}", files.join(", "));
        problems.push(
            Problem::error("stories-file-several", list, what)
                .at(lines.get(id).copied().unwrap_or(1))
                .why("bmad-build-auto stops where it cannot tell which one is meant")
                .todo("keep one of them"),
        );
    }
}

/// Reports dependencies on ids that the list does not have.
fn depends(path: &str, text: &str, ids: &BTreeMap<&str, usize>, problems: &mut Vec<Problem>) {
    for other in story::read(path, text).depends_on.into_iter().take(super::dangling::MOST) {
        if !ids.contains_key(other.as_str()) {
            let what = format!("it depends on `{other}`, and no story has that id");
            let problem = Problem::warning("depends-on-unknown", path, what);
            problems.push(problem.at(super::dangling::line_of(text, &other)).todo("correct the id"));
        }
    }
}
