//! Which documents a project has, in the places and under the names of every era: a whole file, a folder of parts with an
//! `index.md`, or run folders with a date, of which the newest counts.
//!
//! The content is read by the readers of each kind; here are only paths, titles and the progress of their workflows. Folders
//! are searched a few levels deep and only up to a limit, since a project may keep anything there.

mod file_names;

use tribunal_json::Serialize;

use crate::{
    config::ProjectFolders,
    markdown::MarkdownPage,
    problem::FileProblem,
    project_files::{self, ProjectFiles},
    story::scalar_texts,
    yaml,
};
use file_names::{epic_number, file_name, find_date, is_exact_name, is_markdown, is_named_after, kind_from_name};

/// The kinds of documents that BMAD's workflows write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DocumentKind {
    Prd,
    Architecture,
    Ux,
    Epics,
    ProductBrief,
    Research,
    TechSpec,
    /// A folder with a `SPEC.md`; its stories are among its parts.
    Spec,
    /// The file of a story.
    Story,
    /// The spec that `bmad-build` works from, or a result that it left without one.
    StorySpec,
    Readiness,
    Trace,
    TestDesign,
    Retro,
    Deferred,
    ProjectContext,
    ChangeProposal,
    /// The status file of the alphas.
    WorkflowStatus,
}

/// One document of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProjectDocument {
    pub path: String,
    pub kind: DocumentKind,
    pub title: Option<String>,
    /// The progress from `stepsCompleted` in the front matter: numbers in early eras, names of step files later.
    pub steps_completed: Vec<String>,
    /// Whether there is only white space below the front matter.
    pub empty: bool,
    /// The other files that the document consists of.
    pub sharded: Vec<String>,
}

/// All documents of a project; of each kind, the one that counts comes first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProjectDocuments {
    pub found: Vec<ProjectDocument>,
    pub problems: Vec<FileProblem>,
}

impl ProjectDocuments {
    pub fn of_kind(&self, kind: DocumentKind) -> impl Iterator<Item = &ProjectDocument> {
        self.found.iter().filter(move |document| document.kind == kind)
    }

    /// The document of a kind that counts.
    pub fn first_of_kind(&self, kind: DocumentKind) -> Option<&ProjectDocument> {
        self.of_kind(kind).next()
    }

    pub fn prd(&self) -> Option<&ProjectDocument> {
        self.first_of_kind(DocumentKind::Prd)
    }

    pub fn ux(&self) -> Option<&ProjectDocument> {
        self.first_of_kind(DocumentKind::Ux)
    }

    pub fn epics(&self) -> Option<&ProjectDocument> {
        self.first_of_kind(DocumentKind::Epics)
    }

    pub fn readiness(&self) -> Option<&ProjectDocument> {
        self.first_of_kind(DocumentKind::Readiness)
    }
}

impl ProjectDocument {
    /// The paths of the document and its parts, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.path.as_str()).chain(self.sharded.iter().map(String::as_str))
    }
}

/// Finds all documents of a project.
pub fn find_documents(project_files: &dyn ProjectFiles, folders: &ProjectFolders) -> ProjectDocuments {
    let mut finder = DocumentFinder { project_files, names_left: MAX_NAMES, documents: ProjectDocuments::default() };
    for kind in [
        DocumentKind::Prd,
        DocumentKind::Architecture,
        DocumentKind::Ux,
        DocumentKind::Epics,
        DocumentKind::ProductBrief,
    ] {
        finder.find_planned(kind, folders);
    }
    finder.find_by_name(folders);
    finder.find_specs(folders);
    if finder.names_left == 0 {
        let message = format!("more than {MAX_NAMES} files in BMAD's directories; the rest is ignored");
        let problem = FileProblem::warning("documents-many", &folders.output, message);
        finder.documents.problems.push(problem.with_advice("keep BMAD's output in a directory of its own"));
    }
    finder.documents
}

/// How many names are looked at.
const MAX_NAMES: usize = 20_000;

struct DocumentFinder<'s> {
    project_files: &'s dyn ProjectFiles,
    names_left: usize,
    documents: ProjectDocuments,
}

/// One of several files that could be the document.
struct DocumentCandidate {
    path: String,
    sharded: Vec<String>,
    form: DocumentForm,
}

/// How a document is stored. The order is that of the eras.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DocumentForm {
    WholeFile,
    Sharded,
    RunFolder,
}

impl DocumentFinder<'_> {
    /// The files and directories of a directory; directories without their `/`.
    fn list_directory(&mut self, directory: &str) -> (Vec<String>, Vec<String>) {
        let entry_names = self.project_files.list_names(directory);
        let entry_names =
            entry_names.into_iter().take(self.names_left).filter(|entry_name| !entry_name.starts_with('.'));
        let (directory_names, file_names): (Vec<String>, Vec<String>) =
            entry_names.partition(|entry_name| entry_name.ends_with('/'));
        self.names_left = self.names_left.saturating_sub(directory_names.len() + file_names.len());
        (
            file_names,
            directory_names.into_iter().map(|entry_name| entry_name.trim_end_matches('/').to_string()).collect(),
        )
    }

    /// Finds a document of planning: the one that counts first, the alternatives behind it.
    fn find_planned(&mut self, kind: DocumentKind, folders: &ProjectFolders) {
        let mut candidates = self.find_candidates(kind, &folders.planning);
        // Before there were folders for planning, documents were in the output folder or with the project's documentation.
        for older_place in [&folders.output, &folders.knowledge] {
            if candidates.is_empty() && *older_place != folders.planning {
                candidates = self.find_candidates(kind, older_place);
            }
        }
        self.report_alternatives(kind, &candidates);
        for DocumentCandidate { path: main_path, sharded, .. } in candidates {
            self.add_document(kind, main_path, sharded);
        }
    }

    /// All candidates for a document in one directory, the one that counts first.
    fn find_candidates(&mut self, kind: DocumentKind, directory: &str) -> Vec<DocumentCandidate> {
        let (file_names, subdirectories) = self.list_directory(directory);
        let mut whole_files: Vec<String> = file_names
            .into_iter()
            .filter(|entry_name| is_markdown(entry_name) && is_named_after(kind, entry_name))
            .collect();
        // The workflow's own name wins, then the newest date; the name makes the order stable.
        whole_files.sort_by_key(|entry_name| {
            (!is_exact_name(kind, entry_name), std::cmp::Reverse(find_date(entry_name)), entry_name.clone())
        });
        let mut found_candidates = Vec::new();
        // Epics may be one file each, without a list of them; together they are one document.
        if kind == DocumentKind::Epics
            && whole_files.len() > 1
            && whole_files.iter().all(|entry_name| epic_number(entry_name).is_some())
        {
            whole_files.sort_by_key(|entry_name| epic_number(entry_name));
            let mut epic_paths = whole_files.iter().map(|entry_name| join_path(directory, entry_name));
            let first_path = epic_paths.next().unwrap_or_default();
            found_candidates.push(DocumentCandidate {
                path: first_path,
                sharded: epic_paths.collect(),
                form: DocumentForm::WholeFile,
            });
        } else {
            found_candidates.extend(whole_files.iter().map(|entry_name| DocumentCandidate {
                path: join_path(directory, entry_name),
                sharded: Vec::new(),
                form: DocumentForm::WholeFile,
            }));
        }
        let mut run_folders = Vec::new();
        for entry_name in subdirectories.iter().filter(|entry_name| is_named_after(kind, entry_name)) {
            let (sharded_candidate, runs_inside) = self.find_in_subfolder(kind, &join_path(directory, entry_name));
            found_candidates.extend(sharded_candidate);
            run_folders.extend(runs_inside);
        }
        run_folders.sort_by_key(|(entry_name, candidate): &(String, DocumentCandidate)| {
            (std::cmp::Reverse(find_date(entry_name)), std::cmp::Reverse(candidate.path.clone()))
        });
        found_candidates.extend(run_folders.into_iter().map(|(_, candidate)| candidate));
        // BMAD itself prefers the whole file; only for UX does the pair of files of late eras come before what older ones
        // left.
        if kind == DocumentKind::Ux {
            found_candidates.sort_by_key(|candidate| candidate.form != DocumentForm::RunFolder);
        }
        found_candidates
    }

    /// The candidate for a folder of parts, and the candidates of its run folders.
    fn find_in_subfolder(
        &mut self,
        kind: DocumentKind,
        directory: &str,
    ) -> (Option<DocumentCandidate>, Vec<(String, DocumentCandidate)>) {
        let (file_names, subdirectories) = self.list_directory(directory);
        let markdown_names: Vec<String> = file_names.into_iter().filter(|entry_name| is_markdown(entry_name)).collect();
        let sharded_candidate = main_file(kind, &markdown_names)
            .map(|main_name| make_candidate(directory, main_name, &markdown_names, DocumentForm::Sharded));
        let mut run_folders = Vec::new();
        for entry_name in subdirectories {
            let run_directory = join_path(directory, &entry_name);
            let markdown_names: Vec<String> = self
                .list_directory(&run_directory)
                .0
                .into_iter()
                .filter(|entry_name| is_markdown(entry_name))
                .collect();
            // A run folder has the document under its own name; a folder of other parts does not.
            if let Some(main_name) = markdown_names.iter().find(|markdown_name| is_exact_name(kind, markdown_name)) {
                run_folders.push((
                    entry_name,
                    make_candidate(&run_directory, main_name, &markdown_names, DocumentForm::RunFolder),
                ));
            }
        }
        (sharded_candidate, run_folders)
    }

    /// Reports which other files could have been the document.
    fn report_alternatives(&mut self, kind: DocumentKind, candidates: &[DocumentCandidate]) {
        let Some((chosen, alternatives)) =
            candidates.split_first().filter(|(_, alternatives)| !alternatives.is_empty())
        else {
            return;
        };
        let found_forms: std::collections::BTreeSet<DocumentForm> =
            candidates.iter().map(|candidate| candidate.form).collect();
        let alternative_paths: Vec<&str> = alternatives.iter().map(|alternative| alternative.path.as_str()).collect();
        let message = format!("this file is used, but there is also {}", alternative_paths.join(", "));
        let problem = if found_forms.contains(&DocumentForm::WholeFile) && found_forms.len() > 1 {
            // One may have been written after the other was split, so it is unknown which one is right.
            let reason = "The same document exists in two forms, and agents may read either.";
            FileProblem::warning("document-twice", &chosen.path, message)
                .with_reason(reason)
                .with_advice("keep only one of them")
        } else if kind == DocumentKind::ProductBrief || chosen.form == DocumentForm::RunFolder {
            FileProblem::note("document-older", &chosen.path, message)
        } else {
            FileProblem::note("document-several", &chosen.path, message)
        };
        self.documents.problems.push(problem);
    }

    /// Finds the documents that are recognized by their name alone.
    fn find_by_name(&mut self, folders: &ProjectFolders) {
        // The test architect nests its output; of the project's root only the top level is searched.
        let mut search_places: Vec<(&str, usize)> = vec![
            (&folders.planning, 1),
            (&folders.implementation, 1),
            (&folders.tests, 2),
            (&folders.output, 0),
            (&folders.knowledge, 0),
            ("", 0),
        ];
        search_places.dedup();
        let mut found_paths: Vec<(DocumentKind, String)> = Vec::new();
        let mut seen_paths = std::collections::BTreeSet::new();
        for (directory, depth) in search_places {
            let mut file_paths = Vec::new();
            self.collect_files(directory, depth, &mut file_paths);
            for file_path in file_paths {
                if let Some(kind) =
                    // At the root only the context for agents counts; other names there belong to the project.
                    kind_from_name(&file_path)
                        .filter(|kind| !directory.is_empty() || *kind == DocumentKind::ProjectContext)
                    && seen_paths.insert(file_path.clone())
                {
                    found_paths.push((kind, file_path));
                }
            }
        }
        // The newest of a kind comes first; stories are sorted by their keys.
        found_paths.sort_by_key(|(kind, file_path)| {
            let story_key = crate::story::key_from_path(file_path).filter(|_| *kind == DocumentKind::Story);
            (*kind, story_key, std::cmp::Reverse(find_date(file_name(file_path))), file_path.clone())
        });
        for (kind, file_path) in found_paths {
            self.add_document(kind, file_path, Vec::new());
        }
    }

    fn collect_files(&mut self, directory: &str, depth: usize, file_paths: &mut Vec<String>) {
        let (own_files, subdirectories) = self.list_directory(directory);
        file_paths.extend(own_files.iter().map(|entry_name| join_path(directory, entry_name)));
        for entry_name in subdirectories.iter().filter(|_| depth > 0) {
            self.collect_files(&join_path(directory, entry_name), depth - 1, file_paths);
        }
    }

    /// Finds the folders with a `SPEC.md`.
    fn find_specs(&mut self, folders: &ProjectFolders) {
        let mut spec_parents: Vec<String> = [&folders.output, &folders.planning, &folders.implementation]
            .iter()
            .map(|directory| join_path(directory, "specs"))
            .collect();
        spec_parents.dedup();
        for spec_parent in spec_parents {
            for entry_name in self.list_directory(&spec_parent).1 {
                let spec_directory = join_path(&spec_parent, &entry_name);
                let (file_names, subdirectories) = self.list_directory(&spec_directory);
                if !file_names.iter().any(|entry_name| entry_name == "SPEC.md") {
                    continue;
                }
                let mut part_names: Vec<String> =
                    file_names.iter().filter(|entry_name| *entry_name == "stories.yaml").cloned().collect();
                if subdirectories.iter().any(|entry_name| entry_name == "stories") {
                    let story_files = self.list_directory(&join_path(&spec_directory, "stories")).0;
                    part_names.extend(
                        story_files
                            .iter()
                            .filter(|entry_name| is_markdown(entry_name))
                            .map(|entry_name| join_path("stories", entry_name)),
                    );
                }
                let part_paths = part_names.iter().map(|entry_name| join_path(&spec_directory, entry_name)).collect();
                self.add_document(DocumentKind::Spec, join_path(&spec_directory, "SPEC.md"), part_paths);
                if file_names.iter().any(|entry_name| entry_name == "RETROSPECTIVE.md") {
                    self.add_document(DocumentKind::Retro, join_path(&spec_directory, "RETROSPECTIVE.md"), Vec::new());
                }
            }
        }
    }

    fn add_document(&mut self, kind: DocumentKind, document_path: String, sharded: Vec<String>) {
        let mut document = ProjectDocument {
            path: document_path,
            kind,
            title: None,
            steps_completed: Vec::new(),
            empty: false,
            sharded,
        };
        // There are many documents of these kinds, and they have readers of their own.
        let is_skipped = matches!(kind, DocumentKind::Story | DocumentKind::StorySpec | DocumentKind::Research);
        if !is_skipped
            && let Some(document_text) =
                project_files::read_or_report(self.project_files, &document.path, &mut self.documents.problems)
        {
            let markdown = MarkdownPage::parse(&document_text);
            read_metadata(&markdown, &mut document);
            self.documents.problems.extend(front_matter_problem(&markdown, &document.path));
            document.empty = markdown
                .lines
                .iter()
                .all(|line| line.kind == crate::markdown::MarkdownLineKind::FrontMatter || line.is_blank());
            if document.empty {
                let problem = FileProblem::warning("document-empty", &document.path, "the document is empty");
                self.documents.problems.push(problem.with_advice("write it or delete it"));
            }
        }
        self.documents.found.push(document);
    }
}

/// The problem of front matter that is not valid YAML: a workflow can no longer read its own progress there.
fn front_matter_problem(markdown: &MarkdownPage<'_>, document_path: &str) -> Option<FileProblem> {
    let parse_error = yaml::parse_yaml(markdown.front_matter()?).err()?;
    let problem = FileProblem::warning(
        "document-front-matter",
        document_path,
        format!("{} (in the front matter)", parse_error.message),
    );
    // The front matter begins behind the first mark.
    let problem = problem.at_line(parse_error.line.unwrap_or(1) + 1);
    Some(problem.with_reason("Workflows keep their progress in the front matter.").with_advice("fix the line"))
}

fn read_metadata(markdown: &MarkdownPage<'_>, document: &mut ProjectDocument) {
    let headings = markdown.lines.iter().filter_map(|line| line.heading());
    document.title = headings.filter(|(level, _)| *level == 1).map(|(_, title)| title.to_string()).next();
    let Some(Ok(front_matter)) = markdown.front_matter().map(yaml::parse_yaml) else { return };
    let steps = ["stepsCompleted", "steps_completed"].iter().find_map(|key| front_matter.get(key));
    document.steps_completed = steps.map(scalar_texts).unwrap_or_default();
    let front_title = || front_matter.get("title").and_then(yaml::YamlNode::scalar_text).map(str::to_string);
    document.title = document.title.take().or_else(front_title).filter(|title| !title.is_empty());
}

fn make_candidate(directory: &str, main_name: &str, file_names: &[String], form: DocumentForm) -> DocumentCandidate {
    let other_paths =
        file_names.iter().filter(|file_name| *file_name != main_name).map(|file_name| join_path(directory, file_name));
    DocumentCandidate { path: join_path(directory, main_name), sharded: other_paths.collect(), form }
}

/// The file that stands for a folder of parts.
fn main_file(kind: DocumentKind, file_names: &[String]) -> Option<&str> {
    let index_file = file_names.iter().find(|file_name| file_name.eq_ignore_ascii_case("index.md"));
    let exact_file = file_names.iter().find(|file_name| is_exact_name(kind, file_name));
    index_file.or(exact_file).or_else(|| file_names.first()).map(String::as_str)
}

fn join_path(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_string() } else { format!("{directory}/{name}") }
}
