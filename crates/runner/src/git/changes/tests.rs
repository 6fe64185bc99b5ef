//! Tests against real repositories, created for each test.

use std::{
    fs,
    io::Write,
    os::unix::{ffi::OsStringExt, fs::PermissionsExt},
    path::PathBuf,
    process::Stdio,
};

use super::*;
use crate::git::{git_command, to_trimmed_text};

struct TestRepository {
    temp_dir: tempfile::TempDir,
}

impl TestRepository {
    fn new() -> TestRepository {
        let repository = TestRepository { temp_dir: tempfile::tempdir().unwrap() };
        repository.run_git(&["init", "-q", "-b", "main"]);
        repository
    }

    fn repository_root(&self) -> &Path {
        self.temp_dir.path()
    }

    fn absolute_path(&self, path: &str) -> PathBuf {
        self.repository_root().join(path)
    }

    fn run_git(&self, arguments: &[&str]) -> String {
        let mut command = git_command(self.repository_root());
        let identity =
            ["-c", "user.name=n", "-c", "user.email=e@e", "-c", "commit.gpgSign=false", "-c", "core.autocrlf=false"];
        let output = command.args(identity).args(arguments).stderr(Stdio::piped()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        to_trimmed_text(&output.stdout)
    }

    fn write_file(&self, path: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.absolute_path(path).parent().unwrap()).unwrap();
        fs::write(self.absolute_path(path), content).unwrap();
    }

    fn commit_all(&self) -> String {
        self.run_git(&["add", "-A"]);
        self.run_git(&["commit", "-q", "-m", "x", "--allow-empty"]);
        self.run_git(&["rev-parse", "HEAD"])
    }

    fn find_change(&self, selector: ChangeScope, fix: bool) -> Result<FoundChange, ChangeError> {
        find_change(self.repository_root(), &ChangeRequest { needs_fixing: fix, ..new_request(selector) })
    }

    fn work_tree_change(&self) -> CodeChange {
        self.find_change(ChangeScope::WorkTree, true).unwrap().change
    }
}

fn new_request(selector: ChangeScope) -> ChangeRequest {
    ChangeRequest {
        selector,
        path_filters: Vec::new(),
        needs_fixing: false,
        reviews_dir: "out/reviews".into(),
        planning_dirs: Vec::new(),
        is_story: |path, text| path.ends_with(".md") && text.contains("Acceptance"),
    }
}

fn range_selector(range_text: &str) -> ChangeScope {
    ChangeScope::Range(range_text.into())
}

fn describe_files(change: &CodeChange) -> Vec<String> {
    let describe_file = |file: &ChangedPath| match &file.from {
        Some(old_path) => format!("{old_path} -> {}", file.path),
        None => file.path.clone(),
    };
    change.files.iter().map(describe_file).collect()
}

const LONG: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";

#[test]
fn a_range_has_its_commits_and_files_in_the_order_of_their_paths() {
    let repository = TestRepository::new();
    for file in ["a.rs", "gone.rs", "old.rs", "same.rs"] {
        repository.write_file(file, format!("// {file}\n{LONG}"));
    }
    let base = repository.commit_all();
    repository.write_file("a.rs", "changed\n");
    repository.write_file("z/new.rs", "new\n");
    repository.run_git(&["mv", "old.rs", "b.rs"]);
    repository.run_git(&["rm", "-q", "gone.rs"]);
    let end = repository.commit_all();
    let found = repository.find_change(range_selector(&format!("{base}..")), false).unwrap();
    assert_eq!((found.change.base, found.change.end), (base.clone(), Some(end)));
    let found = repository.find_change(range_selector("HEAD~1..HEAD"), true).unwrap();
    assert_eq!(describe_files(&found.change), ["a.rs", "old.rs -> b.rs", "gone.rs", "z/new.rs"]);
    assert_eq!((found.change.base.as_str(), found.change.end.as_deref()), (base.as_str(), None));
    let diff = repository.run_git(&["diff", "-M", "HEAD~1", "HEAD"]);
    assert_eq!(found.total_diff_bytes(), diff.len() as u64 + 1, "what git prints, to the byte");
}

#[test]
fn what_the_work_tree_does_not_have_can_only_be_reviewed() {
    let repository = TestRepository::new();
    repository.write_file("a.rs", "1\n");
    repository.write_file("b.rs", "1\n");
    repository.commit_all();
    repository.write_file("a.rs", "2\n");
    repository.run_git(&["rm", "-q", "b.rs"]);
    repository.commit_all();
    repository.write_file("other.rs", "of no concern\n");
    assert!(repository.find_change(range_selector("HEAD~1..HEAD"), true).is_ok());
    repository.write_file("a.rs", "3\n");
    repository.write_file("b.rs", "1\n");
    let error = repository.find_change(range_selector("HEAD~1..HEAD"), true).unwrap_err();
    assert_eq!(error.to_string(), "the work tree differs from HEAD~1..HEAD in a.rs, b.rs");
    assert!(repository.find_change(range_selector("HEAD~1..HEAD"), false).unwrap().change.end.is_some());
}

#[test]
fn line_ends_that_git_converts_are_no_difference() {
    let repository = TestRepository::new();
    repository.run_git(&["config", "core.autocrlf", "true"]);
    repository.write_file("a.txt", "1\n");
    repository.commit_all();
    repository.write_file("a.txt", "1\n2\n");
    repository.commit_all();
    repository.write_file("a.txt", "1\r\n2\r\n");
    assert_eq!(repository.find_change(range_selector("HEAD~1..HEAD"), true).unwrap().change.end, None);
}

#[test]
fn three_dots_start_where_the_two_parted() {
    let repository = TestRepository::new();
    repository.write_file("a.rs", "1\n");
    let base = repository.commit_all();
    repository.run_git(&["switch", "-q", "-c", "topic"]);
    repository.write_file("topic.rs", "1\n");
    repository.commit_all();
    repository.run_git(&["switch", "-q", "main"]);
    repository.write_file("main.rs", "another\n");
    repository.commit_all();
    let change = repository.find_change(range_selector("main...topic"), false).unwrap().change;
    assert_eq!((change.base.as_str(), describe_files(&change)), (base.as_str(), vec!["topic.rs".to_string()]));
    let change = repository.find_change(range_selector("main..topic"), false).unwrap().change;
    assert_eq!(describe_files(&change), ["main.rs", "topic.rs"]);
}

#[test]
fn the_work_tree_has_new_files_and_none_that_are_ignored() {
    let repository = TestRepository::new();
    repository.write_file(".gitignore", "*.log\n");
    repository.write_file("a.rs", "1\n");
    let base = repository.commit_all();
    repository.write_file("a.rs", "2\n");
    repository.write_file("new dir/neu ü.rs", "1\n");
    repository.write_file("x.log", "1\n");
    let change = repository.work_tree_change();
    assert_eq!((change.base.as_str(), &change.end), (base.as_str(), &None));
    assert_eq!(describe_files(&change), ["a.rs", "new dir/neu ü.rs"]);
    assert_eq!(change.range, "work tree");
}

#[test]
fn before_the_first_commit_everything_is_new() {
    let repository = TestRepository::new();
    repository.write_file("a.rs", "1\n");
    repository.write_file("b.rs", "1\n");
    repository.run_git(&["add", "a.rs"]);
    let change = repository.work_tree_change();
    assert_eq!((change.base.as_str(), describe_files(&change)), ("", vec!["a.rs".to_string(), "b.rs".into()]));
    let staged = repository.find_change(ChangeScope::Staged, false).unwrap().change;
    assert_eq!((staged.base.as_str(), describe_files(&staged)), ("", vec!["a.rs".to_string()]));
}

#[test]
fn what_is_staged_is_a_tree_and_the_index_stays_as_it_is() {
    let repository = TestRepository::new();
    repository.write_file("a.rs", "1\n");
    repository.commit_all();
    repository.write_file("a.rs", "staged\n");
    repository.run_git(&["add", "a.rs"]);
    let index = fs::read(repository.absolute_path(".git/index")).unwrap();
    assert_eq!(
        repository.find_change(ChangeScope::Staged, true).unwrap().change.end,
        None,
        "it is what the work tree has"
    );
    repository.write_file("a.rs", "staged, and more\n");
    let end = repository.find_change(ChangeScope::Staged, false).unwrap().change.end.unwrap();
    assert_eq!(repository.run_git(&["cat-file", "-p", &format!("{end}:a.rs")]), "staged");
    assert!(matches!(repository.find_change(ChangeScope::Staged, true), Err(ChangeError::WorkTreeDiffers { .. })));
    assert!(fs::read(repository.absolute_path(".git/index")).unwrap() == index, "the user's index was written");
    assert!(!repository.absolute_path(".git/index.lock").exists());
}

#[test]
fn a_commit_is_compared_with_its_first_parent() {
    let repository = TestRepository::new();
    repository.write_file("a.rs", "1\n");
    let first = repository.commit_all();
    repository.write_file("b.rs", "1\n");
    let second = repository.commit_all();
    let change = repository.find_change(ChangeScope::Commit("HEAD".into()), false).unwrap().change;
    assert_eq!((change.base, change.end), (first.clone(), Some(second)));
    let change = repository.find_change(ChangeScope::Commit(first), false).unwrap().change;
    assert_eq!((change.base.as_str(), describe_files(&change)), ("", vec!["a.rs".to_string()]));
}

#[test]
fn the_change_of_a_story_is_everything_since_its_start_without_planning_files() {
    let repository = TestRepository::new();
    repository.write_file("a.rs", "1\n");
    let start = repository.commit_all();
    repository.write_file("a.rs", "2\n");
    repository.write_file("plans/1-1-a.md", "1\n");
    repository.commit_all();
    repository.write_file("b.rs", "1\n");
    repository.write_file("plans/board.yaml", "1\n");
    let selector = ChangeScope::WorkTreeSince(start.clone());
    let bookkeeping = vec!["plans".to_string()];
    let change = find_change(
        repository.repository_root(),
        &ChangeRequest { planning_dirs: bookkeeping, ..new_request(selector) },
    )
    .unwrap()
    .change;
    assert_eq!((change.base, change.end), (start, None));
    assert_eq!(
        describe_files(&repository.find_change(ChangeScope::WorkTree, true).unwrap().change),
        ["b.rs", "plans/board.yaml"]
    );
    assert_eq!(change.left_out, ["plans/1-1-a.md: planning file (and 1 more)"]);
    let paths: Vec<String> = change.files.into_iter().map(|file| file.path).collect();
    assert_eq!(paths, ["a.rs", "b.rs"]);
    assert!(matches!(
        repository.find_change(ChangeScope::WorkTreeSince("gone".into()), true),
        Err(ChangeError::UnknownRevision { .. })
    ));
}

#[test]
fn what_a_shallow_clone_lacks_is_reported() {
    let repository = TestRepository::new();
    for number in 0..3 {
        repository.write_file("a.rs", format!("{number}\n"));
        repository.commit_all();
    }
    let clone = TestRepository { temp_dir: tempfile::tempdir().unwrap() };
    let from = format!("file://{}", repository.repository_root().display());
    // Not through our own git command, which never fetches.
    let created = std::process::Command::new("git")
        .args(["clone", "-q", "--depth=1", &from, "."])
        .current_dir(clone.repository_root())
        .status()
        .unwrap();
    assert!(created.success());
    assert!(matches!(
        clone.find_change(ChangeScope::Commit("HEAD".into()), true),
        Err(ChangeError::ShallowHistory { .. })
    ));
    assert!(
        matches!(clone.find_change(range_selector("HEAD~1..HEAD"), true), Err(ChangeError::UnknownRevision { said }) if said == "HEAD~1")
    );
    clone.run_git(&["checkout", "-q", "--orphan", "other"]);
    clone.commit_all();
    assert!(matches!(
        clone.find_change(range_selector("main...other"), true),
        Err(ChangeError::NoCommonHistory { shallow: true, .. })
    ));
}

#[test]
fn unreviewable_files_are_left_out_with_the_reason() {
    let repository = TestRepository::new();
    repository.write_file("tool.sh", "1\n");
    repository.write_file("a.rs", "1\n");
    repository.write_file("was-text", "1\n");
    let head = repository.commit_all();
    repository.write_file("a.rs", "2\n");
    repository.write_file("binary.png", b"\x89PNG\0\0");
    repository.write_file("latin1.txt", b"gr\xfc\xdfe\n");
    repository.write_file("big.txt", "0123456789\n".repeat(100_000));
    repository.write_file("model.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
    repository.write_file("node_modules/x.js", "1\n");
    repository.write_file("was-text", b"now\0binary");
    repository.write_file("generated.sql", "insert into t values (1);\n".repeat(12_000));
    repository.write_file("out/reviews/plan-issues.md", "x\n");
    repository.write_file("out/reviews/review-metrics-1.json", "{}\n");
    repository.write_file("out/awaiting-human/R.D1.yaml", "x\n");
    repository.write_file("out/reports/tribunal-R.md", "x\n");
    std::os::unix::fs::symlink("a.rs", repository.absolute_path("link")).unwrap();
    fs::set_permissions(repository.absolute_path("tool.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(repository.repository_root().join(std::ffi::OsString::from_vec(b"caf\xe9.txt".to_vec())), "1\n").unwrap();
    repository.write_file("line\nend.txt", "1\n");
    let expected = [
        "big.txt: too large (1.0 MB, limit 1.0 MB)",
        "binary.png: binary",
        "caf\u{fffd}.txt\u{fffd}: name is not valid UTF-8",
        "generated.sql: diff too large (305 KB, limit 256 KB); to review it on its own: `tribunal review FILE`",
        "latin1.txt: not valid UTF-8",
        "line\nend.txt: name contains control characters",
        "link: symlink",
        "model.bin: Git LFS pointer",
        "node_modules/x.js: files in node_modules are not reviewed",
        "out/awaiting-human/R.D1.yaml: written by Tribunal (and 3 more)",
        "tool.sh: only the file mode changed",
        "was-text: binary, or marked as binary in .gitattributes",
    ];
    let new = repository.work_tree_change();
    assert_eq!(describe_files(&new), ["a.rs"]);
    assert_eq!(new.left_out, expected);
    repository.run_git(&["add", "-A"]);
    repository.run_git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},vendored")]);
    let staged = repository.find_change(ChangeScope::Staged, false).unwrap().change;
    assert_eq!(describe_files(&staged), ["a.rs"]);
    let mut expected: Vec<String> = expected.map(String::from).to_vec();
    expected.push("vendored: submodule".into());
    expected[1].push_str(", or marked as binary in .gitattributes");
    expected[3] = expected[3].replace("305 KB", "317 KB");
    expected.sort();
    assert_eq!(staged.left_out, expected);
}

#[test]
fn a_change_of_nothing_that_can_be_reviewed_is_refused_with_the_reasons() {
    let repository = TestRepository::new();
    repository.write_file("a.png", b"\0");
    let error = repository.find_change(ChangeScope::WorkTree, true).unwrap_err();
    assert!(
        matches!(&error, ChangeError::NothingReviewable { reasons, .. } if *reasons == ["a.png: binary"]),
        "{error}"
    );
    repository.commit_all();
    assert!(matches!(repository.find_change(ChangeScope::WorkTree, true), Err(ChangeError::EmptyChange { .. })));
}

#[test]
fn paths_are_taken_as_they_are_and_the_project_may_be_a_part_of_the_repository() {
    let repository = TestRepository::new();
    for path in ["app/a*.rs", "app/ab.rs", "app/:(top)x/y.rs", "lib/c.rs"] {
        repository.write_file(path, "1\n");
    }
    let only = |project_root: &Path, paths: &[&str]| {
        let paths = paths.iter().map(ToString::to_string).collect();
        let change =
            find_change(project_root, &ChangeRequest { path_filters: paths, ..new_request(ChangeScope::WorkTree) })
                .unwrap()
                .change;
        (change.range.clone(), describe_files(&change))
    };
    let star = ("work tree in a*.rs".to_string(), vec!["a*.rs".to_string()]);
    assert_eq!(only(&repository.absolute_path("app"), &["a*.rs"]), star);
    assert_eq!(only(&repository.absolute_path("app"), &[":(top)x"]).1, [":(top)x/y.rs"]);
    assert_eq!(only(&repository.absolute_path("app"), &[]).1, [":(top)x/y.rs", "a*.rs", "ab.rs"]);
    repository.run_git(&["add", "-A"]);
    assert_eq!(only(&repository.absolute_path("app"), &[]).1, [":(top)x/y.rs", "a*.rs", "ab.rs"]);
    assert_eq!(only(repository.repository_root(), &["lib", "app/ab.rs"]).1, ["app/ab.rs", "lib/c.rs"]);
}

#[test]
fn conflicts_and_typing_errors_are_named() {
    let repository = TestRepository::new();
    repository.write_file("a.rs", "1\n");
    repository.commit_all();
    repository.run_git(&["switch", "-q", "-c", "topic"]);
    repository.write_file("a.rs", "topic\n");
    repository.commit_all();
    repository.run_git(&["switch", "-q", "main"]);
    repository.write_file("a.rs", "main\n");
    repository.commit_all();
    let error_for = |selector: ChangeScope| repository.find_change(selector, true).unwrap_err().to_string();
    assert_eq!(error_for(range_selector("main..tpoic")), "unknown revision `tpoic`");
    assert_eq!(error_for(range_selector("main")), "`main` is not a range");
    assert_eq!(error_for(range_selector("--output=x..main")), "unknown revision `--output=x`");
    let merge = git_command(repository.repository_root())
        .args(["-c", "user.name=n", "-c", "user.email=e@e", "merge", "-q", "topic"])
        .output();
    assert!(!merge.unwrap().status.success(), "it conflicts");
    assert_eq!(error_for(ChangeScope::WorkTree), "a.rs has unresolved merge conflicts");
    assert_eq!(error_for(ChangeScope::Staged), "a.rs has unresolved merge conflicts");
}

#[test]
fn stories_are_pointed_out_wherever_their_text_is() {
    let repository = TestRepository::new();
    repository.write_file("a.rs", "1\n");
    repository.write_file("s/1-1-in.md", "## Acceptance\n");
    repository.write_file("s/other.md", "# x\n");
    assert_eq!(repository.find_change(ChangeScope::WorkTree, true).unwrap().story_paths, ["s/1-1-in.md"]);
    repository.commit_all();
    assert_eq!(repository.find_change(ChangeScope::Commit("HEAD".into()), true).unwrap().story_paths, ["s/1-1-in.md"]);
    repository.run_git(&["rm", "-q", "s/1-1-in.md"]);
    repository.write_file("a.rs", "2\n");
    assert_eq!(
        repository.find_change(ChangeScope::WorkTree, true).unwrap().story_paths,
        Vec::<String>::new(),
        "a story that is gone asks for nothing"
    );
}

/// Creates a commit with this many small files in one process.
fn import_files(repository: &TestRepository, count: usize) {
    let mut command = git_command(repository.repository_root());
    let mut child = command.args(["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = std::io::BufWriter::new(child.stdin.take().unwrap());
    for (mark, files) in [(1, 0), (2, count)] {
        writeln!(input, "commit refs/heads/main\nmark :{mark}\ncommitter n <e@e> {mark} +0000\ndata 1\nx").unwrap();
        for number in 0..files {
            let text = format!("fn f{number}() {{}}\n");
            let path = format!("src/m{}/d{}/f{number}.rs", number % 7, number % 50);
            writeln!(input, "M 100644 inline {path}\ndata {}\n{text}", text.len()).unwrap();
        }
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn ten_thousand_files_are_refused_with_figures_and_folders() {
    let repository = TestRepository::new();
    import_files(&repository, 10_000);
    let error = repository.find_change(range_selector("main~1..main"), false).unwrap_err();
    let ChangeError::TooBig { files, folders: directories, .. } = &error else { panic!("{error}") };
    assert_eq!((*files, directories.len(), directories[0].0.as_str()), (10_000, 5, "src/m0/"));
    assert_eq!(error.to_string(), "main~1..main is too large for one review: 10000 files");
}

#[test]
fn fifteen_hundred_files_are_parts_by_folder() {
    let repository = TestRepository::new();
    import_files(&repository, 1_500);
    let parts = repository.find_change(range_selector("main~1..main"), false).unwrap().into_parts().unwrap();
    assert_eq!(parts.iter().map(|part| part.change.files.len()).sum::<usize>(), 1_500);
    assert!(parts.len() <= MAX_PARTS, "{}", parts.len());
    assert!(parts.iter().all(|part| part.change.files.len() <= MAX_PART_FILES && part.diff_bytes > 0));
}

#[test]
fn a_file_of_a_hundred_megabytes_is_left_out_by_its_size() {
    let repository = TestRepository::new();
    repository.write_file("dump.sql", "1\n");
    repository.write_file("a.rs", "1\n");
    repository.commit_all();
    repository.write_file("a.rs", "2\n");
    for name in ["dump.sql", "new.sql"] {
        fs::File::create(repository.absolute_path(name)).unwrap().set_len(100 << 20).unwrap();
    }
    let change = repository.work_tree_change();
    assert_eq!(describe_files(&change), ["a.rs"]);
    let size = "too large (100.0 MB, limit 1.0 MB)";
    assert_eq!(change.left_out, [format!("dump.sql: {size}"), format!("new.sql: {size}")]);
}

#[test]
fn what_git_was_told_not_to_look_at_is_not_taken_for_what_was_committed() {
    for hide in ["--skip-worktree", "--assume-unchanged"] {
        let repository = TestRepository::new();
        repository.write_file("a.txt", "one\n");
        repository.commit_all();
        repository.write_file("a.txt", "two\n");
        repository.commit_all();
        repository.run_git(&["update-index", hide, "a.txt"]);
        repository.write_file("a.txt", "a private file\n");
        let found = repository.find_change(ChangeScope::Commit("HEAD".into()), true);
        assert!(matches!(found, Err(ChangeError::WorkTreeDiffers { .. })), "{hide}: {found:?}");
        assert!(repository.find_change(ChangeScope::Commit("HEAD".into()), false).is_ok());
    }
    // A sparse checkout has no such file.
    let repository = TestRepository::new();
    repository.write_file("in/i.txt", "1\n");
    repository.write_file("out/o.txt", "1\n");
    repository.commit_all();
    repository.write_file("out/o.txt", "2\n");
    repository.commit_all();
    repository.run_git(&["sparse-checkout", "set", "in"]);
    let found = repository.find_change(ChangeScope::Commit("HEAD".into()), true);
    assert!(matches!(found, Err(ChangeError::WorkTreeDiffers { .. })), "{found:?}");
}
