// SPDX-License-Identifier: BSD-2-Clause
// Sorts tables, hides curves, opens everything for paper. The page says all without it.
document.querySelectorAll("table.figures").forEach(table => {
	const heads = [...table.tHead.rows[0].cells];
	const value = (row, i) => {
		const cell = row.cells[i];
		return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent;
	};
	heads.forEach((head, i) => {
		const sort = () => {
			const up = head.getAttribute("aria-sort") !== "ascending";
			heads.forEach(other => other.removeAttribute("aria-sort"));
			head.setAttribute("aria-sort", up ? "ascending" : "descending");
			[...table.tBodies[0].rows].sort((a, b) => {
				const x = value(a, i), y = value(b, i);
				return (x > y ? 1 : x < y ? -1 : 0) * (up ? 1 : -1);
			}).forEach(row => table.tBodies[0].append(row));
		};
		head.tabIndex = 0;
		head.onclick = sort;
		head.onkeydown = event => { if (event.key === "Enter") sort(); };
	});
});
document.querySelectorAll(".legend button").forEach(button => {
	button.onclick = () => {
		const on = button.getAttribute("aria-pressed") !== "true";
		button.setAttribute("aria-pressed", on);
		button.closest("section").querySelectorAll("." + button.dataset.of).forEach(curve => {
			curve.style.display = on ? "" : "none";
		});
	};
});
addEventListener("beforeprint", () => {
	document.querySelectorAll("details").forEach(details => { details.open = true; });
});
