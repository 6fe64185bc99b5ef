//! An agent for benchmarks of sprints: `developing-agent FILE` finishes the story that its prompt names, with a file and a test of its
//! own. It appends when it began and when it ended, in nanoseconds since 1970, to FILE.

use std::{
    env, fs, io,
    io::{Read, Write, stdin, stdout},
    path::Path,
};

use tribunal_testkit::SessionStamp;

/// What a prompt says before the path of the story, if the project has no workflow for it.
const PATH_PREFIX: &str = "Develop the story in ";

fn main() -> io::Result<()> {
    let stamp = SessionStamp::begin_session();
    let stamp_path = env::args().nth(1).ok_or_else(|| io::Error::other("usage: developing-agent FILE"))?;
    let mut prompt = String::new();
    stdin().read_to_string(&mut prompt)?;
    let story_path = find_story_path(&prompt).ok_or_else(|| io::Error::other("the prompt names no story"))?;
    develop_story(story_path)?;
    writeln!(stdout(), "The story is done.")?;
    stdout().flush()?;
    stamp.append_to(Path::new(&stamp_path))
}

fn find_story_path(prompt: &str) -> Option<&str> {
    let (_, prompt_rest) = prompt.split_once(PATH_PREFIX)?;
    prompt_rest.split_once(':').map(|(story_path, _)| story_path)
}

/// Writes a file and a test for the story, and says so in the story's own file.
fn develop_story(story_path: &str) -> io::Result<()> {
    let story_key = Path::new(story_path).file_stem().unwrap_or_default().to_string_lossy();
    let (code_path, test_path) = (format!("src/{story_key}.txt"), format!("tests/{story_key}_test.sh"));
    fs::create_dir_all("src")?;
    fs::create_dir_all("tests")?;
    fs::write(&code_path, format!("{story_key} counts\n"))?;
    fs::write(&test_path, "# AC1\n")?;
    let mut finished_text = String::new();
    for line in fs::read_to_string(story_path)?.lines() {
        match line.starts_with("Status:") {
            true => finished_text.push_str("Status: review"),
            false => finished_text.push_str(&line.replace("- [ ]", "- [x]")),
        }
        finished_text.push('\n');
    }
    // The list of changed files is the last part of the story.
    fs::write(story_path, format!("{finished_text}- {code_path}\n- {test_path}\n"))
}
