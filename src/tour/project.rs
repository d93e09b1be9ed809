//! What there is to show in the user's project: which file to read, which edit to propose, which command to run.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder's entries looked at; a folder with more is judged by these.
const MOST_ENTRIES: usize = 2_000;
/// Larger files make a poor example. In bytes.
const LARGEST_FILE: u64 = 256 * 1024;

/// The file that the guide creates, and then keeps a list in, when nothing else wants mending.
const NOTES_FILE: &str = "agentchat-tour.md";
const NOTES: &str = include_str!("text/notes.md");
const OPEN_BOX: &str = "- [ ]";
const TICKED_BOX: &str = "- [x]";

/// A mistake of the sample project.
struct Fix {
    file: &'static str,
    wrong: &'static str,
    right: &'static str,
    title: &'static str,
    /// Said before the edit.
    about: &'static str,
}

const FIXES: [Fix; 2] = [
    Fix {
        file: "gravity.py",
        wrong: "kilograms * GRAVITY[\"Earth\"] / GRAVITY[world]",
        right: "kilograms * GRAVITY[world] / GRAVITY[\"Earth\"]",
        title: "Turn the fraction in gravity.py the right way up",
        about: "The fraction in `felt_weight` is **upside down**: on the Moon, 60 kg would feel like 363. \
                Swapping its two halves makes it right.",
    },
    Fix {
        file: "README.md",
        wrong: "Jupitter",
        right: "Jupiter",
        title: "Mend a typo in README.md",
        about: "A small one: the largest planet has a `t` too many in `README.md`.",
    },
];

/// What a look at the folder has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Project {
    root: PathBuf,
    /// Whether this is the sample project of agentchat.nvim.
    sample: bool,
    /// The file worth reading first.
    showcase: Option<PathBuf>,
    /// Whether the folder is in a Git work tree.
    git: bool,
}

/// An edit to propose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mend {
    pub(super) path: PathBuf,
    /// The whole text before; `None` for a file that does not exist yet.
    pub(super) old: Option<String>,
    /// The whole text after.
    pub(super) new: String,
    /// Where the edit is, 1-based.
    pub(super) line: u32,
    pub(super) title: String,
    pub(super) about: String,
}

/// A command to run in the project's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) program: &'static str,
    pub(super) args: &'static [&'static str],
    /// Whether it checks the sample project, so that its exit code says if the bug is mended.
    pub(super) checks_sample: bool,
}

impl Command {
    /// The command as one would type it.
    pub(super) fn line(&self) -> String {
        let mut words = vec![self.program];
        words.extend(self.args);
        words.join(" ")
    }
}

impl Project {
    /// Looks at the folder `root`. What cannot be read counts as not there. Blocks on the file system.
    pub(super) fn survey(root: &Path) -> Self {
        let sample = ["gravity.py", "test_gravity.py"].iter().all(|name| root.join(name).is_file());
        let showcase = if sample { Some(root.join("gravity.py")) } else { first_text_file(root) };
        Self {
            root: root.to_owned(),
            sample,
            showcase,
            git: root.ancestors().any(|folder| folder.join(".git").exists()),
        }
    }

    /// A folder of which nothing is known.
    pub(super) fn empty(root: &Path) -> Self {
        Self { root: root.to_owned(), sample: false, showcase: None, git: false }
    }

    /// The file worth reading first.
    pub(super) fn showcase(&self) -> Option<&Path> {
        self.showcase.as_deref()
    }

    /// `path` as the user would name it.
    pub(super) fn name_of(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    /// The files an edit may be proposed in, best first. [`Project::mend`] decides once their text is known.
    pub(super) fn mendable(&self) -> Vec<PathBuf> {
        let fixes = FIXES.iter().filter(|_| self.sample).map(|fix| fix.file);
        fixes.chain([NOTES_FILE]).map(|name| self.root.join(name)).collect()
    }

    /// The edit to propose in one of [`Project::mendable`], whose text is `text` (`None`: it does not exist).
    pub(super) fn mend(&self, path: &Path, text: Option<&str>) -> Option<Mend> {
        let name = path.file_name()?.to_str()?;
        if name == NOTES_FILE {
            return Some(match text {
                None => create_notes(path),
                Some(text) => tick_notes(path, text)?,
            });
        }
        let text = text?;
        let fix = FIXES.iter().find(|fix| self.sample && fix.file == name)?;
        let at = text.find(fix.wrong)?;
        Some(Mend {
            path: path.to_owned(),
            old: Some(text.to_owned()),
            new: text.replacen(fix.wrong, fix.right, 1),
            line: line_at(text, at),
            title: fix.title.to_owned(),
            about: fix.about.to_owned(),
        })
    }

    /// The command worth running here: it changes nothing.
    pub(super) fn command(&self) -> Command {
        let (program, args): (_, &[_]) = if self.sample {
            // -B, so that no __pycache__ is left behind.
            (if cfg!(windows) { "python" } else { "python3" }, &["-B", "test_gravity.py"])
        } else if self.git {
            ("git", &["--no-pager", "status", "--short", "--branch"])
        } else if cfg!(windows) {
            ("cmd", &["/c", "dir", "/b"])
        } else {
            ("ls", &["-l"])
        };
        Command { program, args, checks_sample: self.sample }
    }

    /// The line of the showcase worth pointing at, 1-based.
    pub(super) fn line_of_interest(&self, text: &str) -> u32 {
        let found = text.find("def felt_weight").filter(|_| self.sample);
        found.map_or(1, |at| line_at(text, at))
    }
}

fn create_notes(path: &Path) -> Mend {
    Mend {
        path: path.to_owned(),
        old: None,
        new: NOTES.to_owned(),
        line: 1,
        title: format!("Create {NOTES_FILE}"),
        about: format!(
            "I leave your own files alone. What I propose instead is a **new file**, `{NOTES_FILE}`: a short list of \
             things to try, that you can delete whenever you like."
        ),
    }
}

fn tick_notes(path: &Path, text: &str) -> Option<Mend> {
    let at = text.find(OPEN_BOX)?;
    let item = text[at + OPEN_BOX.len()..].lines().next().unwrap_or_default().trim();
    Some(Mend {
        path: path.to_owned(),
        old: Some(text.to_owned()),
        new: text.replacen(OPEN_BOX, TICKED_BOX, 1),
        line: line_at(text, at),
        title: format!("Tick a box in {NOTES_FILE}"),
        about: format!("The next box of your list says: *{item}*. Shall I tick it?"),
    })
}

/// The 1-based line of the byte at `at`.
fn line_at(text: &str, at: usize) -> u32 {
    let breaks = text[..at].matches('\n').count();
    u32::try_from(breaks).unwrap_or(u32::MAX).saturating_add(1)
}

/// A README, else the first file by name that is text.
fn first_text_file(root: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(root).ok()?.take(MOST_ENTRIES).flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.') && name != NOTES_FILE)
        .collect();
    names.sort_by_key(|name| (!name.to_lowercase().starts_with("readme"), name.clone()));
    names.into_iter().map(|name| root.join(name)).find(|path| is_text(path))
}

fn is_text(path: &Path) -> bool {
    // Asked before opening: a FIFO would block.
    let small_file = fs::metadata(path).is_ok_and(|meta| meta.is_file() && (1..=LARGEST_FILE).contains(&meta.len()));
    small_file && fs::read_to_string(path).is_ok_and(|text| !text.contains('\0') && !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    type TestResult = Result<(), Box<dyn Error>>;

    fn sample() -> Project {
        Project::survey(&Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/sample-project"))
    }

    #[test]
    fn the_mistakes_are_in_the_sample_project() -> TestResult {
        let project = sample();
        assert!(project.sample);
        assert_eq!(project.mendable().len(), FIXES.len() + 1);
        for path in &project.mendable()[..FIXES.len()] {
            let text = fs::read_to_string(path)?;
            let mend = project.mend(path, Some(&text)).ok_or("nothing to mend")?;
            let changed: Vec<_> = text.lines().zip(mend.new.lines()).enumerate().collect();
            let first = changed.iter().position(|(_, (old, new))| old != new).ok_or("no change")?;
            assert_eq!(mend.line as usize, first + 1);
            assert_eq!(project.mend(path, Some(&mend.new)), None, "a mended file is left alone");
        }
        Ok(())
    }

    #[test]
    fn the_notes_are_ticked_one_box_at_a_time() -> TestResult {
        let project = Project::survey(tempfile::tempdir()?.path());
        let [notes] = &project.mendable()[..] else {
            return Err("only the notes may be proposed outside the sample".into());
        };
        let created = project.mend(notes, None).ok_or("nothing to create")?;
        let mut text = created.new;
        let mut boxes = text.matches(OPEN_BOX).count();
        assert!(boxes >= 3);
        while let Some(mend) = project.mend(notes, Some(&text)) {
            boxes -= 1;
            text = mend.new;
            assert_eq!(text.matches(OPEN_BOX).count(), boxes);
        }
        assert_eq!(boxes, 0);
        Ok(())
    }

    #[test]
    fn a_readme_comes_first_and_what_is_no_text_never() -> TestResult {
        let folder = tempfile::tempdir()?;
        let root = folder.path();
        fs::create_dir(root.join("README"))?;
        fs::write(root.join("a.bin"), b"\0\x01")?;
        fs::write(root.join("b.latin1"), b"caf\xe9")?;
        fs::write(root.join("c.empty"), b"")?;
        fs::write(root.join(".hidden"), b"secret")?;
        assert_eq!(Project::survey(root).showcase(), None);
        fs::write(root.join("main.lua"), b"return 1")?;
        assert_eq!(Project::survey(root).showcase(), Some(&*root.join("main.lua")));
        fs::write(root.join("readme.txt"), b"hello")?;
        assert_eq!(Project::survey(root).showcase(), Some(&*root.join("readme.txt")));
        Ok(())
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_empty_one() {
        let project = Project::survey(Path::new("/nowhere/at/all"));
        assert_eq!((project.showcase(), project.sample), (None, false));
    }
}
