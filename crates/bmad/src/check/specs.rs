//! Folders with a `SPEC.md`: the stories in `stories.yaml` compared with the files beside it. A story without a file has not
//! been started.

use std::collections::BTreeMap;

use super::material::CheckMaterial;
use crate::{documents::DocumentKind, problem::FileProblem, project_files, specs, story};

pub(super) fn check_specs(check_material: &CheckMaterial<'_>, problems: &mut Vec<FileProblem>) {
    for document in check_material.documents.of_kind(DocumentKind::Spec) {
        let Some(list_path) = document.sharded.iter().find(|path| path.ends_with("/stories.yaml")) else {
            continue;
        };
        let Some(yaml_text) = project_files::read_or_report(check_material.project_files, list_path, problems) else {
            continue;
        };
        let spec_stories = specs::read_stories(list_path, &yaml_text);
        problems.extend(spec_stories.problems);
        let story_ids: Vec<(&str, usize)> =
            spec_stories.stories.iter().map(|story| (story.id.as_str(), story.line)).collect();
        let story_paths = document.sharded.iter().filter(|path| path.ends_with(".md")).map(String::as_str);
        compare_files(check_material, list_path, &story_ids, story_paths.collect(), problems);
    }
}

/// Compares the listed ids with the story files, and checks each file.
fn compare_files(
    check_material: &CheckMaterial<'_>,
    list_path: &str,
    story_ids: &[(&str, usize)],
    story_paths: Vec<&str>,
    problems: &mut Vec<FileProblem>,
) {
    let lines_by_id: BTreeMap<&str, usize> = story_ids.iter().copied().collect();
    let mut paths_by_id: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for story_path in story_paths {
        let file_name = story_path.rsplit('/').next().unwrap_or(story_path);
        let file_stem = file_name.strip_suffix(".md").unwrap_or(file_name);
        // The id is followed by a dash; the longest id that fits is meant.
        let id_candidates =
            file_stem.match_indices('-').map(|(dash_offset, _)| &file_stem[..dash_offset]).chain([file_stem]);
        match id_candidates
            .filter(|id_candidate| lines_by_id.contains_key(id_candidate))
            .max_by_key(|id_candidate| id_candidate.len())
        {
            Some(story_id) => paths_by_id.entry(story_id).or_default().push(story_path),
            // Without a readable list every file would be reported.
            None if lines_by_id.is_empty() => {}
            None => problems.push(
                FileProblem::warning(
                    "stories-file-unlisted",
                    story_path,
                    format!("this file belongs to no story in {list_path}"),
                )
                .with_advice("list it there or delete the file"),
            ),
        }
        if let Some(story_text) = project_files::read_or_report(check_material.project_files, story_path, problems) {
            problems.extend(specs::read_spec(story_path, &story_text).problems);
            check_dependencies(story_path, &story_text, &lines_by_id, problems);
        }
    }
    for (story_id, story_paths) in paths_by_id.iter().filter(|(_, story_paths)| story_paths.len() > 1) {
        let message = format!("story {story_id:?} has several files: {}", story_paths.join(", "));
        problems.push(
            FileProblem::error("stories-file-several", list_path, message)
                .at_line(lines_by_id.get(story_id).copied().unwrap_or(1))
                .with_reason("`bmad-build-auto` stops if it cannot tell which file to use.")
                .with_advice("keep only one of them"),
        );
    }
}

/// Reports dependencies on ids that the list does not have.
fn check_dependencies(
    story_path: &str,
    story_text: &str,
    lines_by_id: &BTreeMap<&str, usize>,
    problems: &mut Vec<FileProblem>,
) {
    for dependency_id in
        story::read_story(story_path, story_text).links.depends_on.into_iter().take(super::references::MAX_REFERENCES)
    {
        if !lines_by_id.contains_key(dependency_id.as_str()) {
            let message = format!("depends on unknown story id `{dependency_id}`");
            let problem = FileProblem::warning("depends-on-unknown", story_path, message);
            problems.push(
                problem
                    .at_line(super::references::find_front_matter_line(story_text, &dependency_id))
                    .with_advice("correct the id"),
            );
        }
    }
}
