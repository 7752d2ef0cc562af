// Marks the note whose link was clicked.
for (const link of document.querySelectorAll("article a")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    document.querySelector(".current")?.classList.remove("current");
    link.closest("article").classList.add("current");
  });
}
