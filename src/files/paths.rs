//! Where a path really leads.

use std::path::{Component, Path, PathBuf};

/// `path` with links and `..` resolved, as far as it exists. `Err` with the resolved path if that is not within
/// `confined_to` (which is resolved too).
///
/// # Errors
/// The resolved path, when it lies outside.
pub fn resolve(path: &Path, confined_to: Option<&Path>) -> Result<PathBuf, PathBuf> {
    let resolved = resolve_existing(path);
    match confined_to {
        Some(root) if !resolved.starts_with(resolve_existing(root)) => Err(resolved),
        _ => Ok(resolved),
    }
}

/// Resolves the longest part that exists, and appends the rest with its `..` taken away.
fn resolve_existing(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut existing = path;
    let base = loop {
        if let Ok(base) = existing.canonicalize() {
            break base;
        }
        match (existing.parent(), existing.components().next_back()) {
            (Some(parent), Some(last)) => {
                rest.push(last);
                existing = parent;
            }
            _ => break existing.to_owned(),
        }
    };
    rest.into_iter().rev().fold(base, |mut resolved, component| {
        match component {
            Component::ParentDir => {
                resolved.pop();
            }
            Component::CurDir => {}
            other => resolved.push(other),
        }
        resolved
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_outside_is_outside() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let top = folder.path().canonicalize()?;
        let root = top.join("root");
        std::fs::create_dir_all(root.join("sub"))?;
        std::fs::write(top.join("secret"), "x")?;
        let inside = |path: &str| resolve(&root.join(path), Some(&root));
        assert_eq!(inside("sub/new/file"), Ok(root.join("sub/new/file")));
        assert_eq!(inside("sub/../a"), Ok(root.join("a")));
        assert_eq!(inside("../secret"), Err(top.join("secret")));
        assert_eq!(inside("missing/../../secret"), Err(top.join("secret")));
        assert_eq!(resolve(&top.join("secret"), None), Ok(top.join("secret")));
        assert_eq!(resolve(&top.join("rootless"), Some(&root)), Err(top.join("rootless")));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&top, root.join("link"))?;
            assert_eq!(inside("link/secret"), Err(top.join("secret")));
            assert_eq!(inside("link/root/a"), Ok(root.join("a")));
        }
        Ok(())
    }
}
