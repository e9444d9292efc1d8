use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, BufWriter, ErrorKind, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

/// A file that a command writes. Nothing is at its path before [`finish`](Self::finish).
///
/// A regular file is replaced at once, and keeps its permissions. A link is followed and stays a link. A pipe or a device
/// is written to, and is never replaced. A link to nothing is an error, because whoever made the link may not be whoever
/// runs the command.
#[derive(Debug)]
pub struct OutputFile {
    content: BufWriter<File>,
    target: Target,
}

/// Where the content goes in the end.
#[derive(Debug)]
enum Target {
    /// The content is in a temporary file in the same folder, which gets this path.
    Renamed(tempfile::TempPath, PathBuf),
    /// The content is in a temporary file, and is copied to this pipe or device.
    Copied(File),
}

impl OutputFile {
    /// Creates a temporary file for the content of `path`.
    pub fn create(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(found) if found.is_file() => {
                Self::beside(path.canonicalize()?, Some(found.permissions()))
            }
            Ok(_) => Self::copied(path),
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            Err(_) if fs::symlink_metadata(path).is_ok() => Err(io::Error::new(
                ErrorKind::NotFound,
                "is a link to a file that does not exist",
            )),
            Err(_) => Self::beside(path.to_owned(), None),
        }
    }

    /// Creates a temporary file in the folder of a path, under a random name that did not exist.
    fn beside(path: PathBuf, permissions: Option<Permissions>) -> io::Result<Self> {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let file = temporary_file(folder.unwrap_or(Path::new(".")))?;
        if let Some(permissions) = permissions {
            file.as_file().set_permissions(permissions)?;
        }
        let (file, temporary) = file.into_parts();
        Ok(Self {
            content: BufWriter::new(file),
            target: Target::Renamed(temporary, path),
        })
    }

    /// Opens a pipe or a device, and creates a temporary file without a name.
    fn copied(path: &Path) -> io::Result<Self> {
        let target = Target::Copied(OpenOptions::new().write(true).open(path)?);
        Ok(Self {
            content: BufWriter::new(tempfile::tempfile()?),
            target,
        })
    }

    /// Puts the content at its path. Without this, the content is lost.
    pub fn finish(self) -> io::Result<()> {
        let mut content = self
            .content
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        match self.target {
            Target::Renamed(temporary, path) => {
                temporary.persist(path).map_err(|error| error.error)
            }
            Target::Copied(mut target) => {
                content.rewind()?;
                io::copy(&mut content, &mut target)?;
                target.flush()
            }
        }
    }
}

fn temporary_file(folder: &Path) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new();
    file.prefix(".hlorank-");
    // As any new file: whoever the umask allows may read it.
    #[cfg(unix)]
    file.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    file.tempfile_in(folder)
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.content.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.content.flush()
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.content.seek(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, content: &str) -> io::Result<()> {
        let mut file = OutputFile::create(path)?;
        file.write_all(content.as_bytes())?;
        file.finish()
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_once_it_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write(&path, "old").unwrap();
        let mut file = OutputFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        drop(file);
        assert_eq!(
            (fs::read_to_string(&path).unwrap(), names(folder.path())),
            ("old".into(), vec!["file".into()])
        );
        write(&path, "new").unwrap();
        assert_eq!(
            (fs::read_to_string(&path).unwrap(), names(folder.path())),
            ("new".into(), vec!["file".into()])
        );
    }

    #[test]
    fn a_folder_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "new").unwrap_err();
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_its_file_keeps_its_permissions() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let [links, files] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let (link, file) = (links.path().join("link"), files.path().join("file"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        write(&link, "new").unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), file);
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o640
        );
        fs::remove_file(&file).unwrap();
        let error = write(&link, "new").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("a link to a file that does not exist"),
            "{error}"
        );
        assert!(names(files.path()).is_empty());
    }
}
