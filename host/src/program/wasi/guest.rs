//! `Guest`: the memory of a program, every access checked; and what ends a call
//! of its.

/// Numbers of errors (witx `errno`), those that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Errno {
    BadF = 8,
    Busy = 10,
    Exist = 20,
    Fault = 21,
    IlSeq = 25,
    Inval = 28,
    Io = 29,
    IsDir = 31,
    Loop = 32,
    MFile = 33,
    NameTooLong = 37,
    NoEnt = 44,
    NoSpc = 51,
    NotDir = 54,
    NotEmpty = 55,
    NotSup = 58,
    Perm = 63,
    RoFs = 69,
    SPipe = 70,
}

/// Why a call does not return as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The program reads this number.
    Errno(Errno),
    /// The program ends with this exit code.
    Exit(i32),
    /// The program is ended from outside.
    Stopped,
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

/// What a call answers: what it has to say lies in the memory.
pub(super) type CallResult = Result<(), Fault>;

/// Linear memory.
pub(super) struct Guest<'a>(pub(super) &'a mut [u8]);

/// A buffer in the memory: address and length.
pub(super) type Buffer = (u32, u32);

impl Guest<'_> {
    pub(super) fn bytes(&self, at: u32, length: u32) -> Result<&[u8], Errno> {
        let start = at as usize;
        let end = start.checked_add(length as usize).ok_or(Errno::Fault)?;
        self.0.get(start..end).ok_or(Errno::Fault)
    }

    pub(super) fn bytes_mut(&mut self, at: u32, length: u32) -> Result<&mut [u8], Errno> {
        let start = at as usize;
        let end = start.checked_add(length as usize).ok_or(Errno::Fault)?;
        self.0.get_mut(start..end).ok_or(Errno::Fault)
    }

    fn array<const N: usize>(&self, at: u32) -> Result<[u8; N], Errno> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(at, N as u32)?);
        Ok(array)
    }

    pub(super) fn u8(&self, at: u32) -> Result<u8, Errno> {
        self.array(at).map(u8::from_le_bytes)
    }

    pub(super) fn u16(&self, at: u32) -> Result<u16, Errno> {
        self.array(at).map(u16::from_le_bytes)
    }

    pub(super) fn u32(&self, at: u32) -> Result<u32, Errno> {
        self.array(at).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&self, at: u32) -> Result<u64, Errno> {
        self.array(at).map(u64::from_le_bytes)
    }

    pub(super) fn put(&mut self, at: u32, bytes: &[u8]) -> Result<(), Errno> {
        let length = u32::try_from(bytes.len()).map_err(|_| Errno::Fault)?;
        self.bytes_mut(at, length)?.copy_from_slice(bytes);
        Ok(())
    }

    pub(super) fn put_u32(&mut self, at: u32, value: u32) -> Result<(), Errno> {
        self.put(at, &value.to_le_bytes())
    }

    pub(super) fn put_u64(&mut self, at: u32, value: u64) -> Result<(), Errno> {
        self.put(at, &value.to_le_bytes())
    }

    /// The address of element `index` of a table at `at`.
    pub(super) fn element(at: u32, index: u32, size: u32) -> Result<u32, Errno> {
        index
            .checked_mul(size)
            .and_then(|offset| at.checked_add(offset))
            .ok_or(Errno::Fault)
    }

    /// Buffer `index` of a list of them.
    pub(super) fn buffer(&self, list: u32, index: u32) -> Result<Buffer, Errno> {
        let at = Self::element(list, index, 8)?;
        let length_at = at.checked_add(4).ok_or(Errno::Fault)?;
        Ok((self.u32(at)?, self.u32(length_at)?))
    }

    /// A path.
    pub(super) fn text(&self, at: u32, length: u32) -> Result<String, Errno> {
        /// Longer ones lead nowhere.
        const LONGEST: u32 = 4096;
        if length > LONGEST {
            return Err(Errno::NameTooLong);
        }
        let text = std::str::from_utf8(self.bytes(at, length)?);
        text.map(str::to_owned).map_err(|_| Errno::IlSeq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_of_the_memory_is_refused() {
        let mut memory = [0; 16];
        let mut guest = Guest(&mut memory);
        assert_eq!(guest.put_u64(8, 7), Ok(()));
        assert_eq!(guest.u64(8), Ok(7));
        assert_eq!(guest.put_u64(9, 7), Err(Errno::Fault));
        assert_eq!(guest.u32(u32::MAX), Err(Errno::Fault));
        assert_eq!(guest.bytes(16, 0), Ok(&[][..]));
        assert_eq!(guest.bytes(17, 0), Err(Errno::Fault));
        assert_eq!(guest.buffer(u32::MAX - 3, 0), Err(Errno::Fault));
        assert_eq!(guest.buffer(8, u32::MAX), Err(Errno::Fault));
        assert_eq!(guest.text(0, 5_000), Err(Errno::NameTooLong));
        assert_eq!(guest.put(0, b"\xff"), Ok(()));
        assert_eq!(guest.text(0, 1), Err(Errno::IlSeq));
    }
}
