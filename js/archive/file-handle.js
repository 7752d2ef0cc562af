// File handles: those of the browser's disks and of directories that a page makes up.

/**
 * Gives a file its content, as a whole or not at all.
 * @param {FileSystemFileHandle} file
 * @param {FileSystemWriteChunkType[]} pieces written one after the other
 * @param {() => Promise<void>} [confirm] called just before it counts; if it rejects, it does not
 */
export async function replaceContent(file, pieces, confirm) {
  // Goes into a copy, which takes the file's place when it is closed.
  const stream = await file.createWritable();
  try {
    for (const piece of pieces) await stream.write(piece);
    await confirm?.();
  } catch (error) {
    // Directories that a page made up may have no way back.
    await stream.abort?.().catch(() => {});
    throw error;
  }
  await stream.close();
}
